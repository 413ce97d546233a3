"""What operators that solve a question step by step share: steps that name earlier answers, and notes of what was found.

A step is a text; ``#2`` in it stands for the answer of the second. A note is the text ``#2 STEP -> ANSWER``: it can be
shown as it stands, and since it is numbered no two notes of a question are one.
"""

import re
from collections.abc import Sequence

from graphrag_bench.pipeline.texts import Text

UNKNOWN = "unknown"
STEP = {"type": "string", "minLength": 1, "maxLength": 160}  # as a schema; a small model may not find an end
_ARROW = " -> "
_VARIABLE = re.compile(r"#(\d+)")


def note(number: int, step: str, answer: str) -> Text:
    """Return the note of a step, counted from 1."""
    return Text(f"#{number} {step.replace(_ARROW, ' ')}{_ARROW}{' '.join(answer.split()).replace(_ARROW, ' ')}")


def answer_of(text: str) -> str:
    """Return the answer that a note holds."""
    return text.rpartition(_ARROW)[2]


def filled(step: str, notes: Sequence[Text]) -> str:
    """Return a step with the answers it names in their places.

    Where the answer was not found, the words of that step stand for it, so that something of it is still looked for; a
    number that no note has is left as it is.
    """

    def put(match: re.Match[str]) -> str:
        at = int(match.group(1)) - 1
        if not 0 <= at < len(notes):
            return match.group()
        answer = answer_of(notes[at].text)
        if answer.casefold().strip(" .") != UNKNOWN:
            return answer
        return notes[at].text.partition(" ")[2].rpartition(_ARROW)[0].rstrip(" ?.")

    return _VARIABLE.sub(put, step)


def tidy(steps: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Return proposed steps on one line each, without what is said twice, is known, or has no word beside other answers."""
    said = dict.fromkeys(" ".join(step.split()) for step in steps)
    return [step for step in said if any(map(str.isalpha, step)) and step not in known]
