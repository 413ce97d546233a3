"""What a scorer sees of one question, and how it is read from JSON lines."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from graphrag_bench.data import reading
from graphrag_bench.errors import UserError
from graphrag_bench.registry import nearest

Status = Literal["ok", "failed", "refused", "retrieved"]  # retrieved: never asked for an answer


@dataclass(frozen=True, slots=True)
class Record:
    """One question to score. ``prediction`` is None where the method gave no answer (failed, or refused wordlessly)."""

    id: str
    prediction: str | None
    answers: tuple[str, ...] = ()  # every accepted alias; empty = no gold answer, so answer metrics leave it unscored
    retrieved: tuple[str, ...] | None = None  # passage ids, best first; None = the method retrieves no chunk
    gold_passages: tuple[str, ...] = ()
    status: Status = "ok"
    reason: str = ""  # of a failure; the part before the first ":" is its kind
    type: str = ""
    context_text: str | None = None  # what really entered the prompt
    gold_texts: tuple[str, ...] | None = None  # the texts of the gold passages, for text recall


def read_records(path: Path) -> tuple[Record, ...]:
    """Read one record a line: ``{"id", "prediction", "answers", …}``, from this project or any other.

    Optional fields: ``retrieved``, ``gold_passages``, ``status``, ``reason``, ``type``, ``context_text``,
    ``gold_texts``; others are ignored. Ids may be strings or integers. A null prediction (or status "failed") is a
    failure, never an empty answer. A name that ends in ``.gz`` is unpacked.

    Raises:
        UserError: The file cannot be read, holds no record, or lines are wrong (``Faults`` where several are).
    """
    found = reading.read_records(path, _record)
    faults = reading.FaultList(str(path))
    first: dict[str, str] = {}
    for located in found:
        earlier = first.setdefault(located.value.id, located.place)
        if earlier != located.place:
            faults.add(f"{located.place}: the id {located.value.id!r} was already used at {earlier}.",
                       "Keep one line a question.")
    faults.settle()
    return tuple(located.value for located in found)


def _record(row: reading.Row) -> Record:
    for name in ("id", "prediction", "answers"):
        if name not in row.fields:
            raise UserError(f'{row.place}: the field "{name}" is missing.', _fix(name, row))
    if isinstance(row.fields["answers"], str):
        raise UserError(f'{row.place}: the field "answers" must be a list of strings, but it is a string.',
                        "Write every accepted answer as an item of a list.")
    status = row.text("status", default="ok")
    if status not in get_args(Status):
        raise UserError(f"{row.place}: the status {status!r} is unknown.", nearest(status, get_args(Status)))
    prediction = _optional_text(row, "prediction")
    reason = row.text("reason", default="")
    if status == "ok" and prediction is None:
        status, reason = "failed", reason or "no prediction"
    return Record(
        id=_identifier(row, "id", row.fields["id"]),
        prediction=None if status == "failed" else prediction,
        answers=row.texts("answers"),
        retrieved=None if row.fields.get("retrieved") is None else _identifiers(row, "retrieved"),
        gold_passages=_identifiers(row, "gold_passages"),
        status=cast(Status, status),
        reason=reason,
        type=row.text("type", default=""),
        context_text=_optional_text(row, "context_text"),
        gold_texts=None if row.fields.get("gold_texts") is None else row.texts("gold_texts"),
    )


def _optional_text(row: reading.Row, name: str) -> str | None:
    return None if row.fields.get(name) is None else row.text(name)


def _identifiers(row: reading.Row, name: str) -> tuple[str, ...]:
    return tuple(_identifier(row, name, item) for item in row.items(name))


def _identifier(row: reading.Row, name: str, value: object) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    raise UserError(f'{row.place}: "{name}" holds {value!r}, which is no id.', "An id is a string or a whole number.")


def _fix(name: str, row: reading.Row) -> str:
    near = nearest(name, row.fields)
    if near.startswith("Did you mean "):
        return f"Is it the one called {near.removeprefix('Did you mean ').removesuffix('?')!r}? Then rename that."
    return f"The line has: {', '.join(row.fields)}." if row.fields else "The line has no field at all."
