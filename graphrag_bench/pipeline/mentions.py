"""The mentions of a question, found by a rule."""

import re
from functools import cache
from importlib.resources import files

_HERE = "graphrag_bench.pipeline"
_QUOTED = re.compile(r"[\"“«]([^\"”»]{2,})[\"”»]|(?<!\w)['‘]([^'’]{2,}?)['’](?!\w)")
_NAME = r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w.'’&/-]*|\d[\w.,:/-]*)"
_SHORT = "of|the|and|&|for|in|on|at|to|with|from|by|de|la|le|von|van|der|den|du|da|do|dos|del|di|bin|al"
_CAPITALISED = re.compile(rf"{_NAME}(?:\s+(?:(?:{_SHORT})\s+){{0,2}}{_NAME})*")
_WORD = re.compile(r"[^\W_][\w'’-]*")


def mentions(text: str) -> tuple[str, ...]:
    """Return the mentions of one question, in the order they stand in it."""
    asking = _words("asking")
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        if name := (match.group(1) or match.group(2)).strip(" ,.?!"):
            found[name] = None
    rest = _QUOTED.sub(" , ", text)
    for match in _CAPITALISED.finditer(rest):
        words = match.group().split()
        while words and words[0].casefold().strip(".,'’") in asking:
            words.pop(0)
        name = re.sub(r"['’]s$", "", " ".join(words).strip(" ,.?!:;"))
        if len(name) > 1 or name.isdigit():
            found[name] = None
    if not found:
        found = dict.fromkeys(content_runs(text))
    return tuple(found)


def content_runs(text: str) -> list[str]:
    """Return the runs of content words of a text: what is between the words that name nothing by themselves."""
    empty = _words("asking") | _words("plain")
    runs: list[list[str]] = [[]]
    for word in _WORD.findall(text):
        if word.casefold() in empty:
            runs.append([])
        else:
            runs[-1].append(word)
    return [" ".join(run) for run in runs if run]


@cache
def _words(name: str) -> frozenset[str]:
    """Return a word list: "asking" words begin questions, "plain" ones name nothing by themselves."""
    return frozenset(files(_HERE).joinpath("words", f"{name}.txt").read_text("utf-8").split())
