"""WordLlama: static token vectors, averaged. Hundreds of times faster than a transformer, and weaker."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Role
from graphrag_bench.embedding.vectors import check_texts, no_rows, unit_rows
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register

_WEIGHTS = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_SLAB = 4096  # texts whose tokens are held at once


@register("embedder", "wordllama")
class WordLlamaEmbedder:
    """Embed with the 256-dimensional static vectors that the package wordllama ships; it has no window.

    The package's two data files are read as they are. Its code is not imported: that would set up the root logger and
    fall back to a download, and it pads every text to the longest of its batch. The vectors are the same.
    """

    dim = 256

    def __init__(self) -> None:
        spec = find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise UserError("The embedder wordllama needs the package wordllama, which is not installed.",
                            "Run: pip install 'graphrag-bench[embedded]'")
        self._folder = Path(spec.origin).parent
        if missing := [str(name) for name in (_WEIGHTS, _TOKENIZER) if not (self._folder / name).is_file()]:
            raise UserError(f"The installed package wordllama lacks {' and '.join(missing)}.",
                            "Install the version that graphrag-bench[embedded] asks for.")
        self.identity: Mapping[str, Any] = {
            "backend": "wordllama",
            "model": hashlib.sha256((self._folder / _WEIGHTS).read_bytes()).hexdigest(),
            "tokenizer": hashlib.sha256((self._folder / _TOKENIZER).read_bytes()).hexdigest(),
            "dim": self.dim,
        }

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return (n, 256) unit vectors, the mean of each text's token vectors; there are no roles.

        Raises:
            UserError: A text is empty.
        """
        check_texts(texts)
        if not texts:
            return no_rows(self.dim)
        rows = np.empty((len(texts), self.dim), dtype=np.float32)
        for start in range(0, len(texts), _SLAB):
            slab = list(texts[start : start + _SLAB])
            for row, encoding in enumerate(self._tokenizer.encode_batch(slab, add_special_tokens=False), start):
                # No token at all gives a zero row, which unit_rows reports with the text.
                rows[row] = self._table[encoding.ids].sum(axis=0) / max(1, len(encoding.ids))
        return unit_rows(rows, texts)

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return 0: a mean of token vectors has no window."""
        return 0

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        from safetensors.numpy import load_file

        table: NDArray[np.float32] = load_file(self._folder / _WEIGHTS)["embedding.weight"].astype(np.float32)
        return table

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / _TOKENIZER))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
