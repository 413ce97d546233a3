"""all-MiniLM-L6-v2 with 8-bit weights on onnxruntime: the default embedder, two CPU cores and no torch."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Role
from graphrag_bench.embedding.vectors import check_texts, no_rows, unit_rows
from graphrag_bench.embedding.windows import OVERLAP, LongText, merge, spans
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register
from graphrag_bench.weights import resolve, sha256_of, store_root

_POSITIONS = 512  # the model has no more position embeddings
_SLAB = 4096  # texts whose tokens are held at once


@register("embedder", "minilm", inert=("threads", "batch_tokens"))
class MiniLMEmbedder:
    """Embed with all-MiniLM-L6-v2 (384 dimensions, mean pooling; weights int8, arithmetic float32).

    The same text gets the same bytes whatever else is embedded with it: a batch holds only texts of one token length,
    so nothing is ever padded, and pooling is done text by text. Each batch runs on one thread and ``threads`` batches
    run side by side, which is faster here than one batch on all threads (256 tokens: twice as fast).

    Args:
        model: A name known to ``graphrag_bench.weights``, or the path of an ONNX file of the same architecture.
        tokenizer: Likewise for its ``tokenizer.json``.
        max_tokens: The window, special tokens included. The model was trained on 256 and takes up to 512.
        long_text: ``mean`` averages the vectors of overlapping windows; ``truncate`` reads only the first.
        threads: Batches run at once; by default the cores this process may use, but at most 2.
        batch_tokens: About how many tokens a batch holds.
    """

    dim = 384

    def __init__(
        self,
        *,
        model: str = "minilm-int8-onnx",
        tokenizer: str = "minilm-tokenizer",
        max_tokens: int = 256,
        long_text: LongText = "mean",
        threads: int | None = None,
        batch_tokens: int = 256,
    ) -> None:
        if not 3 <= max_tokens <= _POSITIONS:
            raise UserError(f"minilm cannot have a window of {max_tokens} tokens.",
                            f"Set max_tokens to 3…{_POSITIONS}.")
        if long_text not in ("mean", "truncate"):
            raise UserError(f"long_text is {long_text!r}.", "Write mean or truncate.")
        self._model = model
        self._tokenizer_file = tokenizer
        self._body = max_tokens - 2  # [CLS] and [SEP] take two
        self._long_text: LongText = long_text
        self._threads = max(1, threads or min(2, _usable_cores()))
        self._batch_tokens = batch_tokens
        self.identity: Mapping[str, Any] = {
            "backend": "minilm",
            "model": sha256_of(model),
            "tokenizer": sha256_of(tokenizer),
            "dim": self.dim,
            "max_tokens": max_tokens,
            "long_text": long_text,
            "overlap": OVERLAP if long_text == "mean" else 0,
        }

    def embed(self, texts: Sequence[str], role: Role = "passage") -> NDArray[np.float32]:
        """Return (n, 384) unit vectors; the model knows no roles.

        Raises:
            UserError: A text is empty, or the weights cannot be had.
        """
        check_texts(texts)
        if not texts:
            return no_rows(self.dim)
        slabs = [texts[start : start + _SLAB] for start in range(0, len(texts), _SLAB)]
        return np.concatenate([self._embed_slab(slab) for slab in slabs])

    def long_texts(self, texts: Sequence[str]) -> int:
        """Return how many texts have more tokens than the window."""
        slabs = (texts[start : start + _SLAB] for start in range(0, len(texts), _SLAB))
        return sum(len(ids) > self._body for slab in slabs for ids in self._encode(slab))

    def _embed_slab(self, texts: Sequence[str]) -> NDArray[np.float32]:
        pieces: list[list[int]] = []
        owners: list[int] = []
        for owner, ids in enumerate(self._encode(texts)):
            for start, stop in spans(len(ids), self._body, self._long_text):
                pieces.append(ids[start:stop])
                owners.append(owner)
        rows = unit_rows(self._run_all(pieces), [texts[owner] for owner in owners])
        return unit_rows(merge(rows, owners, len(texts)), texts) if len(pieces) > len(texts) else rows

    def _run_all(self, pieces: list[list[int]]) -> NDArray[np.float32]:
        """Run the pieces in batches of equal length, the longest first so that no thread is left alone at the end."""
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]), reverse=True)
        batches: list[list[int]] = []
        for length, group in groupby(order, key=lambda i: len(pieces[i])):
            members = list(group)
            size = max(1, self._batch_tokens // (length + 2))
            batches += [members[start : start + size] for start in range(0, len(members), size)]
        rows = np.empty((len(pieces), self.dim), dtype=np.float32)
        with ThreadPoolExecutor(self._threads) as pool:
            done = pool.map(lambda batch: self._run([pieces[i] for i in batch]), batches)
            for batch, vectors in zip(batches, done, strict=True):
                rows[batch] = vectors
        return rows

    def _run(self, batch: list[list[int]]) -> NDArray[np.float32]:
        first, last = self._special
        ids = np.array([[first, *piece, last] for piece in batch], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, feed)[0]
        if hidden.ndim != 3 or hidden.shape[2] != self.dim:
            raise UserError(f"The model {self._model} makes an array of shape {hidden.shape}, not (…, …, 384).",
                            "Give an export of all-MiniLM-L6-v2 whose first output is last_hidden_state.")
        # One mean a text: a reduction over the whole batch may add up in another order than over a single text.
        return np.stack([tokens.mean(axis=0) for tokens in hidden])

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime
            from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidGraph, InvalidProtobuf
        except ImportError:
            raise UserError("The embedder minilm needs onnxruntime, which is not installed.",
                            "Run: pip install 'graphrag-bench[embedded]'") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        path = resolve(self._model, store_root())
        try:
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except (Fail, InvalidGraph, InvalidProtobuf) as error:
            raise UserError(f"{path} is not a model that onnxruntime can load ({error}).",
                            "Give the path of an ONNX file of all-MiniLM-L6-v2, or leave model as it was.") from error

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(resolve(self._tokenizer_file, store_root())))
        tokenizer.no_truncation()  # the file says 128 tokens, padded; windows are cut here
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _special(self) -> tuple[int, int]:
        return self._tokenizer.token_to_id("[CLS]"), self._tokenizer.token_to_id("[SEP]")


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
