"""Tables of somebody else's index, Parquet or JSON lines, as rows that say where a fault lies."""

import math
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from graphrag_bench.data.reading import Row, read_records
from graphrag_bench.errors import UserError

ENDINGS = (".parquet", ".jsonl", ".jsonl.gz")


def find_table(folder: Path, *names: str) -> Path | None:
    """Return the one file of a table, by any of its names and endings, or None; raise UserError where there are two."""
    found = [path for name in names for ending in ENDINGS if (path := folder / f"{name}{ending}").is_file()]
    if len(found) > 1:
        raise UserError(f"{folder} holds both {found[0].name} and {found[1].name}.", "Keep one of them.")
    return found[0] if found else None


def read_rows(path: Path, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a table, of a Parquet file only the named columns it has.

    Raises:
        UserError: The file cannot be read; with its line or row where there is one.
    """
    if path.suffix != ".parquet":
        return [found.value for found in read_records(path, lambda row: row)]
    table = read_parquet(path)
    kept = table.select([name for name in table.column_names if name in columns])
    return [Row(fields, f"{path} (row {number})") for number, fields in enumerate(kept.to_pylist(), start=1)]


def read_parquet(path: Path) -> pa.Table:
    """Return a Parquet file's table; raise UserError where it is none."""
    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        said = str(error).split("\n")[0].rstrip(".")
        raise UserError(f"{path} cannot be read as Parquet: {said}.", "Fetch or export the file again.") from None


def number(row: Row, *names: str) -> float | None:
    """Return the first of the named fields that is there, a finite number (or its text), or None.

    Raises:
        UserError: The field is no number.
    """
    for name in names:
        value = row.fields.get(name)
        if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
            continue
        try:
            found = float("nan") if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            found = float("nan")
        if not math.isfinite(found):
            raise UserError(f'{row.place}: the field "{name}" must be a number, and is {value!r}.', "Mend the row.")
        return found
    return None


def whole(row: Row, *names: str) -> int | None:
    """Like ``number``, for a whole number."""
    found = number(row, *names)
    if found is not None and found != int(found):
        raise UserError(f'{row.place}: the field "{names[0]}" must be a whole number, and is {found}.', "Mend the row.")
    return None if found is None else int(found)


def labels(row: Row, *names: str) -> list[str]:
    """Return the first of the named fields that is there, a list of texts or whole numbers, as texts.

    Raises:
        UserError: The field is no list, or an item of it is neither.
    """
    for name in names:
        if row.fields.get(name) is not None:
            return [Row({name: item}, row.place).label(name, default="") for item in row.items(name)]
    return []


def identifier(row: Row, *names: str) -> str:
    """Return the first of the named fields that is there, a text or whole number (``3.0`` is 3 too), or the empty text."""
    for name in names:
        value = row.fields.get(name)
        if value is not None and not (isinstance(value, float) and math.isnan(value)):
            whole_number = isinstance(value, float) and value == int(value)
            return str(int(value)) if whole_number else row.label(name, default="")
    return ""
