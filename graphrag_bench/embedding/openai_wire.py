"""What an OpenAI-compatible embedding server says, understood: vectors, or the trouble it is in."""

import base64
import binascii
import json
import time
from email.utils import parsedate_to_datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHOWN = 200


class Trouble(Exception):
    """A request that failed: a clause to follow "The embedding server …", and whether to send it again."""

    def __init__(self, problem: str, fix: str = "", *, retry: bool = False, retry_after: float | None = None) -> None:
        self.problem = problem
        self.fix = fix
        self.retry = retry
        self.retry_after = retry_after
        super().__init__(problem)


def read_reply(content: bytes, count: int, dim: int) -> NDArray[np.float32]:
    """Return the (count, dim) vectors of a reply in the order asked for; base64 or lists of numbers, as it comes.

    Raises:
        Trouble: The reply is an error, is not what the protocol says, or has another number or length of vectors.
    """
    try:
        reply = json.loads(content)
    except ValueError:
        raise Trouble(f"sent something that is not JSON: {_short(content.decode('utf-8', 'replace'))}",
                      "Check that base_url ends with the path of the API, usually /v1.") from None
    if not isinstance(reply, dict) or reply.get("error") or not isinstance(reply.get("data"), list):
        error = reply.get("error") if isinstance(reply, dict) else None
        raise Trouble(f"answered with an error instead of vectors: {_message(error) or _short(str(reply))}",
                      "Check that the model is an embedding model of that server.")
    items = reply["data"]
    if len(items) != count:
        raise Trouble(f"sent {len(items)} vectors for {count} texts", "Try batch_size=1.")
    rows = np.empty((count, dim), dtype=np.float32)
    seen = set()
    for position, item in enumerate(items):
        row = item.get("index", position) if isinstance(item, dict) else -1
        if not isinstance(row, int) or not 0 <= row < count or row in seen:
            raise Trouble("numbered its vectors wrongly", "Try batch_size=1.")
        seen.add(row)
        vector = _vector(item.get("embedding"))
        if vector.shape != (dim,):
            raise Trouble(f"sent a vector of {vector.size} numbers where {dim} were expected",
                          f"Set dimensions={vector.size}, or shorten=true where the model can be shortened to {dim}.")
        if not np.isfinite(vector).all():
            raise Trouble("sent a vector with values that are not finite numbers", "Check the model on the server.")
        rows[row] = vector
    return rows


def as_trouble(error: Exception) -> Trouble:
    """Translate an exception of the openai package."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    if isinstance(error, APITimeoutError):
        return Trouble("did not answer in time", "Raise timeout, or lower batch_size.", retry=True)
    if isinstance(error, APIConnectionError):
        return Trouble("cannot be reached", "Start the server, or correct base_url.", retry=True)
    if not isinstance(error, APIStatusError):
        return Trouble(f"could not be asked: {_short(str(error))}")
    status = error.status_code
    body = error.body if isinstance(error.body, dict) else {}
    said = _message(body) or _short(error.message)
    if status in (401, 403):
        return Trouble(f"refused the key ({status}): {said}", "Check the variable that api_key_env names.")
    if status == 404:
        return Trouble(f"does not know the model or the address (404): {said}", "Check model and base_url.")
    if status == 429 and body.get("code") == "insufficient_quota":
        return Trouble(f"says that the quota is spent (429): {said}", "Top up the account.")
    if status in (408, 409, 429) or status >= 500:
        return Trouble(f"is overloaded or broken ({status}): {said}", "Try again later; what is finished is kept.",
                       retry=True, retry_after=_retry_after(error.response.headers))
    return Trouble(f"refused the request ({status}): {said}", "If a text was too long, lower max_tokens.")


def _vector(value: Any) -> NDArray[np.float32]:
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
        # A null in a list (JSON has no NaN, some servers write null for it) becomes NaN, which is reported as such.
        return np.asarray(value, dtype=np.float32)
    except (ValueError, TypeError, binascii.Error):
        raise Trouble("sent a vector that is neither base64 nor a list of numbers",
                      "Check that it speaks the OpenAI protocol.") from None


def _retry_after(headers: Any) -> float | None:
    """Return the seconds that Retry-After asks for, given as a number or as a date."""
    said = headers.get("retry-after")
    if said is None:
        return None
    try:
        return max(0.0, float(said))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return None


def _message(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("error") or ""
        if isinstance(error, dict):
            error = error.get("message", "")
    return _short(str(error)) if error else ""


def _short(text: str) -> str:
    flat = " ".join(text.split()).rstrip(".")
    return flat if len(flat) <= _SHOWN else flat[:_SHOWN] + "…"
