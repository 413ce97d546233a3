"""What makes two model calls the same call."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_bench.llm.base import Message


def canonical(value: Any) -> str:
    """Return JSON that is the same for equal values: sorted keys, no blanks, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def identity_text(identity: Mapping[str, Any]) -> str:
    """Return the part of a backend's identity that can change the reply to a given prompt, as JSON.

    The window is left out: it decides how a caller cuts a prompt, and the cut prompt is in the key.
    """
    return canonical({name: value for name, value in identity.items() if name != "window"})


def prompt_key(
    messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Any] | None, sample: int
) -> str:
    """Return the SHA-256 of what is asked, whoever is asked."""
    # A grammar follows the order in which a schema names its properties, so that order is kept, not sorted away.
    shape = None if schema is None else json.dumps(schema, separators=(",", ":"))
    asked = [[[message.role, message.text] for message in messages], max_tokens, shape, sample]
    return hashlib.sha256(canonical(asked).encode()).hexdigest()


def call_key(identity: str, prompt: str) -> str:
    """Return the cache's key of a call from ``identity_text`` and ``prompt_key``."""
    return hashlib.sha256(f"{identity}\n{prompt}".encode()).hexdigest()
