"""Token windows over one text, and the making of chunks from pieces of documents."""

from bisect import bisect_right
from collections.abc import Iterable
from typing import Literal, NamedTuple

from graphrag_bench.chunking.tokenizers import Tokenizer
from graphrag_bench.chunking.types import Chunk, ChunkTable
from graphrag_bench.data.types import Document
from graphrag_bench.errors import UserError

Tail = Literal["drop", "keep"]


class Window(NamedTuple):
    """A slice of a text, in characters, and how many tokens it has."""

    start: int
    stop: int
    tokens: int


def check_windows(size: int, overlap: int, tail: str) -> None:
    """Refuse settings that make no windows.

    Raises:
        UserError: ``size`` is below 1, ``overlap`` is not in [0, size), or ``tail`` is unknown.
    """
    if size < 1:
        raise UserError(f"A chunk size of {size} tokens cuts nothing.", "Set `size` to 1 or more.")
    if not 0 <= overlap < size:
        raise UserError(f"An overlap of {overlap} tokens does not fit windows of {size}.",
                        "Set `overlap` to 0 or more and below `size`.")
    if tail not in ("drop", "keep"):
        raise UserError(f"There is no tail rule {tail!r}.", "Take `drop` or `keep`.")


def windows(text: str, tokenizer: Tokenizer, size: int, overlap: int, tail: Tail = "drop") -> list[Window]:
    """Cut a text into windows of ``size`` tokens, each beginning ``size - overlap`` tokens after the one before.

    The windows cover the text. A byte-level token may be part of a character; a window then begins or ends before that
    character, and holds fewer tokens rather than half of it. Only a single character of more than ``size`` tokens makes
    a window longer than ``size``.

    Args:
        text: The text.
        tokenizer: Says where tokens begin.
        size: Tokens a window.
        overlap: Tokens that a window shares with the one before.
        tail: ``drop`` leaves out windows that lie wholly inside the one before, which the usual stepping makes when
            ``overlap`` tokens or fewer are left; ``keep`` makes them, as the original code bases do.
    """
    # An atom is what cannot be cut: the tokens that begin at one character. `before[i]` counts the tokens up to atom i.
    cuts: list[int] = []
    before: list[int] = []
    starts = tokenizer.starts(text)
    for position, start in enumerate(starts):
        if not cuts or start > cuts[-1]:
            cuts.append(start)
            before.append(position)
    if not cuts:
        return [Window(0, len(text), 0)] if text else []
    total = len(starts)
    cuts[0] = 0
    cuts.append(len(text))
    before.append(total)
    found = []
    first = 0
    while first < len(cuts) - 1:
        stop = max(bisect_right(before, before[first] + size) - 1, first + 1)
        found.append(Window(cuts[first], cuts[stop], before[stop] - before[first]))
        if stop == len(cuts) - 1 and tail == "drop":
            break
        first = max(bisect_right(before, before[first] + size - overlap) - 1, first + 1)
    return found


def pieces(text: str, spans: Iterable[Window]) -> list[str]:
    """Return the texts of windows; white space at a cut, but not at the ends of the text itself, is left out."""
    found = []
    for span in spans:
        piece = text[span.start : span.stop]
        piece = piece.lstrip() if span.start > 0 else piece
        piece = piece.rstrip() if span.stop < len(text) else piece
        if piece.strip():
            found.append(piece)
    return found


def make_chunks(cut: Iterable[tuple[Document, str]], tokenizer: Tokenizer, prepend_title: bool) -> ChunkTable:
    """Number the pieces of documents, in order; those of exactly the same final text become one chunk.

    Args:
        cut: (document, piece of its text) pairs.
        tokenizer: Counts the tokens of the final texts.
        prepend_title: Put the title and a line break before each piece, where there is a title.
    """
    sources: dict[str, tuple[str, dict[str, None]]] = {}
    for document, piece in cut:
        title = document.title.strip()
        text = f"{title}\n{piece}" if prepend_title and title else piece
        sources.setdefault(text, (document.title, {}))[1][document.id] = None
    return tuple(
        Chunk(number, text, title, tuple(documents), len(tokenizer.starts(text)))
        for number, (text, (title, documents)) in enumerate(sources.items())
    )
