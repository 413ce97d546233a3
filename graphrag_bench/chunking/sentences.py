"""Chunks of whole sentences up to a number of tokens, as RAPTOR cuts its leaves."""

import re
from collections.abc import Iterator

from graphrag_bench.chunking.tokenizers import Tokenizer, load_tokenizer
from graphrag_bench.chunking.types import ChunkTable, Documents
from graphrag_bench.chunking.windows import Window, check_windows, make_chunks, pieces, windows
from graphrag_bench.registry import register

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_CLAUSE = re.compile(r"(?<=[,;:，；：])\s*")


@register("chunker", "sentences")
def sentences(
    documents: Documents, *, size: int = 100, overlap: int = 0, tokenizer: str = "regex", prepend_title: bool = True
) -> ChunkTable:
    """Fill chunks with whole sentences up to ``size`` tokens.

    A sentence ends at a full stop, question or exclamation mark before white space, or at a line break. One of more than
    ``size`` tokens is divided at commas, semicolons and colons, and what is still longer into windows. Source: Sarthi et
    al., 2024, section 3, and the splitter of its repository (100 tokens, no overlap).

    Args:
        documents: The corpus.
        size: Tokens a chunk at most, the prepended title not counted.
        overlap: Tokens at most of whole sentences that a chunk repeats from the one before.
        tokenizer: ``regex``, ``minilm``, ``cl100k``, ``o200k`` or a path; see ``load_tokenizer``.
        prepend_title: Put the title and a line break before each chunk, where the document has one.

    Raises:
        UserError: The settings make no chunks, or the tokenizer is unknown.
    """
    check_windows(size, overlap, "drop")
    cutter = load_tokenizer(tokenizer)

    def cut_up(text: str) -> list[str]:
        return pieces(text, _packed(text, list(_spans(text, cutter, size)), cutter, size, overlap))

    cut = ((document, piece) for document in documents for piece in cut_up(document.text))
    return make_chunks(cut, cutter, prepend_title)


def _spans(text: str, cutter: Tokenizer, size: int) -> Iterator[Window]:
    """Yield the sentences of a text, or parts of them, each of ``size`` tokens at most."""
    for sentence in _divided(text, Window(0, len(text), size + 1), _SENTENCE, cutter):
        if sentence.tokens <= size:
            yield sentence
            continue
        for clause in _divided(text, sentence, _CLAUSE, cutter):
            if clause.tokens <= size:
                yield clause
                continue
            for part in windows(text[clause.start : clause.stop], cutter, size, 0):
                yield Window(clause.start + part.start, clause.start + part.stop, part.tokens)


def _divided(text: str, span: Window, ends: re.Pattern[str], cutter: Tokenizer) -> Iterator[Window]:
    start = span.start
    for match in ends.finditer(text, span.start, span.stop):
        if match.end() > start:
            yield _window(text, start, match.end(), cutter)
            start = match.end()
    if start < span.stop:
        yield _window(text, start, span.stop, cutter)


def _window(text: str, start: int, stop: int, cutter: Tokenizer) -> Window:
    return Window(start, stop, len(cutter.starts(text[start:stop].strip())))


def _packed(text: str, spans: list[Window], cutter: Tokenizer, size: int, overlap: int) -> Iterator[Window]:
    """Yield runs of spans of ``size`` tokens at most; a run begins with the last spans of the one before, in ``overlap``."""
    first = 0
    while first < len(spans):
        stop, run = first + 1, spans[first]
        # counted as a whole: line breaks between sentences are tokens, and those at the ends are left out
        while stop < len(spans) and (more := _window(text, run.start, spans[stop].stop, cutter)).tokens <= size:
            stop, run = stop + 1, more
        yield run
        if stop == len(spans):
            return
        again, repeated = stop, 0
        while again - 1 > first and repeated + spans[again - 1].tokens <= overlap:
            again -= 1
            repeated += spans[again].tokens
        first = again
