"""Any model of the sentence-transformers library, on torch."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Role
from graphrag_bench.embedding.vectors import check_texts, no_rows, unit_rows
from graphrag_bench.embedding.windows import OVERLAP, LongText, merge, spans
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register


@register("embedder", "sentence_transformers", inert=("device", "batch_size"))
class SentenceTransformersEmbedder:
    """Embed with a sentence-transformers model; the model is loaded when the embedder is made.

    Vectors may differ in their last bits between devices and batches, as torch's do.

    Args:
        model: A name on the model hub, or the path of a folder (its files then are part of the identity).
        revision: The commit or tag on the hub; give one for results that can be repeated.
        device: ``cpu``, ``cuda`` …; by default the library's choice.
        query_prompt: Put before every query, as the model's card says (E5: ``query: ``).
        passage_prompt: Put before every passage.
        max_tokens: The window, special tokens included; by default the model's own.
        long_text: ``mean`` averages the vectors of overlapping windows; ``truncate`` reads only the first.
        batch_size: Texts a batch.
    """

    def __init__(
        self,
        *,
        model: str = "sentence-transformers/all-mpnet-base-v2",
        revision: str | None = None,
        device: str | None = None,
        query_prompt: str = "",
        passage_prompt: str = "",
        max_tokens: int | None = None,
        long_text: LongText = "mean",
        batch_size: int = 32,
    ) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise UserError("The embedder sentence_transformers needs that library, which is not installed.",
                            "Run: pip install 'graphrag-bench[sentence-transformers]'") from None
        try:
            self._model = SentenceTransformer(model, revision=revision, device=device)
        except (OSError, ValueError) as error:
            raise UserError(f"The model {model} cannot be loaded: {_first_line(error)}.",
                            "Check its name, or give the path of a folder that holds it.") from error
        own_window = self._model.max_seq_length
        if max_tokens is not None and own_window is not None and max_tokens > own_window:
            raise UserError(f"max_tokens is {max_tokens}, but {model} reads at most {own_window}.", "Lower it.")
        self._window: int | None = max_tokens or own_window
        self._prompts: dict[Role, str] = {"query": query_prompt, "passage": passage_prompt}
        self._long_text: LongText = long_text
        self._batch_size = batch_size
        # Asked of the model itself: the method that says it has changed its name between versions of the library.
        self.dim = int(self._model.encode(["dimension"], convert_to_numpy=True, show_progress_bar=False).shape[1])
        folder = Path(model).expanduser()
        self.identity: Mapping[str, Any] = {
            "backend": "sentence_transformers",
            "model": _folder_hash(folder) if folder.is_dir() else model,
            "revision": revision,
            "dim": self.dim,
            "prompts": dict(self._prompts),
            "max_tokens": self._window,
            "long_text": long_text,
            "overlap": OVERLAP if long_text == "mean" else 0,
        }

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return (n, dim) unit vectors.

        Raises:
            UserError: A text is empty.
        """
        check_texts(texts)
        if not texts:
            return no_rows(self.dim)
        prompt = self._prompts[role]
        pieces: list[str] = []
        owners: list[int] = []
        for owner, text in enumerate(texts):
            cut = self._cut(text, prompt)
            pieces += [prompt + piece for piece in cut]
            owners += [owner] * len(cut)
        found = self._model.encode(pieces, batch_size=self._batch_size, convert_to_numpy=True, show_progress_bar=False)
        rows = unit_rows(found, pieces)
        return unit_rows(merge(rows, owners, len(texts)), texts) if len(pieces) > len(texts) else rows

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return how many texts have more tokens than the window leaves beside the passage prompt."""
        room = self._room(self._prompts["passage"])
        return 0 if room is None else sum(len(self._tokens(text)) > room for text in texts)

    def _cut(self, text: str, prompt: str) -> list[str]:
        room = self._room(prompt)
        # A text has no more tokens than bytes, so a short one needs no tokenizer.
        if room is None or len(text.encode("utf-8", "surrogatepass")) <= room:
            return [text]
        tokens = self._tokens(text)
        if len(tokens) <= room:
            return [text]
        # Characters stand in for tokens, in this text's own proportion, so that the model reads the text as written.
        characters = max(1, len(text) * room // len(tokens))
        return [text[start:stop] for start, stop in spans(len(text), characters, self._long_text)
                if text[start:stop].strip()]

    def _room(self, prompt: str) -> int | None:
        if self._window is None:
            return None
        special = len(self._model.tokenizer.encode(prompt, add_special_tokens=True))
        return max(1, self._window - special)

    def _tokens(self, text: str) -> list[int]:
        tokens: list[int] = self._model.tokenizer.encode(text, add_special_tokens=False)
        return tokens


def _folder_hash(folder: Path) -> str:
    """Return one hash over the names and contents of a model folder's files; hidden ones do not count."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as file:
                digests[name.as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()


def _first_line(error: Exception) -> str:
    return str(error).split(os.linesep)[0].split("\n")[0].rstrip(".")
