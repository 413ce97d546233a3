"""Strict readers of JSON lines, JSON lists and tab-separated files, plain or gzipped.

A file is read whole or not at all. Every fault names the file and the line and says what to do; the faults of one file
are gathered, so that a broken export is mended in one go and not line by line.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from graphrag_bench.errors import Faults, UserError

MOST_FAULTS = 10  # past this the file as a whole is wrong, and a longer list helps nobody

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Located(Generic[T]):
    """A value and the place it was read from, ``file:line``, which later checks name in their faults."""

    value: T
    place: str


class FaultList:
    """Faults found in one pass; ``settle`` raises them, a single one as itself."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._faults: list[UserError] = []

    def add(self, problem: str, fix: str = "") -> None:
        """Note a fault; raise all of them once there are ``MOST_FAULTS``."""
        self._faults.append(UserError(problem, fix))
        if len(self._faults) >= MOST_FAULTS:
            self.settle()

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Note a ``UserError`` raised inside and go on with the next row."""
        try:
            yield
        except UserError as fault:
            self.add(fault.problem, fault.fix)

    def settle(self) -> None:
        """Raise what was found.

        Raises:
            UserError: The only fault, or ``Faults`` with all of them.
        """
        if len(self._faults) == 1:
            raise self._faults[0]
        if self._faults:
            count = f"The first {MOST_FAULTS}" if len(self._faults) >= MOST_FAULTS else str(len(self._faults))
            raise Faults(f"{count} faults in {self._subject}; nothing of it was loaded:", self._faults)


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object and its place; its methods read a field or say what is wrong with it."""

    fields: dict[str, Any]
    place: str

    def text(self, *names: str, default: str | None = None) -> str:
        """Return the first of the named fields that is there; an absent or null one is ``default``.

        Raises:
            UserError: The field is missing and has no default, or is not a string.
        """
        for name in names:
            value = self.fields.get(name)
            if value is not None:
                return value if isinstance(value, str) else self._wrong(name, value, "a string")
        if default is None:
            raise UserError(f'{self.place}: the field "{names[0]}" is missing.', f'Add "{names[0]}", a string.')
        return default

    def label(self, *names: str, default: str) -> str:
        """Like ``text``, but a whole number is taken too (``7`` is ``"7"``): some formats number their rows."""
        for name in names:
            value = self.fields.get(name)
            if isinstance(value, int) and not isinstance(value, bool):
                return str(value)
            if value is not None:
                return self.text(name)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings; an absent or null field is the empty list.

        Raises:
            UserError: The field is not a list, or an item of it is not a string.
        """
        for item in (items := self.items(name)):
            if not isinstance(item, str):
                self._wrong(name, item, "a list of strings", "an item of it is")
        return tuple(items)

    def items(self, name: str) -> list[Any]:
        """Return a list of anything; an absent or null field is the empty list."""
        value = self.fields.get(name)
        if value is None:
            return []
        return value if isinstance(value, list) else self._wrong(name, value, "a list")

    def others(self, *used: str) -> dict[str, Any]:
        """Return the fields not named in ``used``."""
        return {name: value for name, value in self.fields.items() if name not in used}

    def _wrong(self, name: str, value: object, wanted: str, is_: str = "it is") -> NoReturn:
        kind = {"int": "a number", "float": "a number", "bool": "true or false", "list": "a list", "dict": "an object",
                "str": "a string", "NoneType": "null"}.get(type(value).__name__, type(value).__name__)
        raise UserError(f'{self.place}: the field "{name}" must be {wanted}, but {is_} {kind}.',
                        f"Write {wanted} there.")


def read_records(path: Path, parse: Callable[[Row], T]) -> list[Located[T]]:
    """Read a file of JSON lines (blank lines are skipped) and parse each object.

    Args:
        path: The file; a name ending in ``.gz`` is decompressed.
        parse: Makes a value of one row, or raises ``UserError``.

    Raises:
        UserError: A fault of the file or of its rows; ``Faults`` where there are several.
    """
    faults = FaultList(str(path))
    found: list[Located[T]] = []
    seen = False
    for number, line in read_lines(path, faults):
        if not line.strip():
            continue
        if not seen and line.strip() in ("[", "{"):
            raise UserError(f"{path}:{number}: the file is one indented JSON value, not JSON lines.",
                            "Write one whole object a line.")
        seen = True
        with faults.catching():
            row = Row(_object(_decode(line.rstrip("\r\n"), path, number), f"{path}:{number}"), f"{path}:{number}")
            found.append(Located(parse(row), row.place))
    faults.settle()
    if not seen:
        raise UserError(f"{path}:1: the file is empty.", "Give it one JSON object a line, or remove it.")
    return found


def read_array(path: Path, parse: Callable[[Row], T], *, key: str = "") -> list[Located[T]]:
    """Read a JSON list of objects (or, with ``key``, the list under that key of one object) and parse each.

    Raises:
        UserError: A fault of the file or of its items; ``Faults`` where there are several.
    """
    faults = FaultList(str(path))
    text = "".join(line for _, line in read_lines(path, faults))
    faults.settle()
    if not text.strip():
        raise UserError(f"{path}:1: the file is empty.", "Give it a JSON list of objects.")
    if key:
        value = _object(_decode(text, path, 1), f"{path}:1")
        if not isinstance(value.get(key), list):
            raise UserError(f'{path}:1: there is no list under "{key}".', f'The file should be {{"{key}": [ … ]}}.')
        items = [(f"{path}:1 (item {n} of {key})", item) for n, item in enumerate(value[key], start=1)]
    else:
        items = list(_array_items(text, path))
    found: list[Located[T]] = []
    for place, item in items:
        with faults.catching():
            found.append(Located(parse(Row(_object(item, place), place)), place))
    faults.settle()
    return found


def read_lines(path: Path, faults: FaultList) -> Iterator[tuple[int, str]]:
    """Yield (line number, line with its end) of a UTF-8 file, noting faults and leaving out what cannot be read.

    Raises:
        UserError: The file cannot be opened, or its gzip stream is damaged.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                    faults.add(f"{path}:1: the file begins with a byte order mark.", "Save it as UTF-8 without BOM.")
                    raw = raw[3:]
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    if number == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
                        raise UserError(f"{path}:1: the file is UTF-16.", "Save it as UTF-8.") from error
                    if number == 1 and raw.startswith(b"\x1f\x8b"):
                        raise UserError(f"{path}:1: the file is gzip but its name does not say so.",
                                        f"Rename it to {path.name}.gz.") from error
                    faults.add(f"{path}:{number}: byte {error.start + 1} of the line is not UTF-8.",
                               "Save the file as UTF-8.")
                    continue
                yield number, line
    except FileNotFoundError:
        raise UserError(f"{path} does not exist.", "Check the path.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        faults.add(f"{path}:{number + 1}: the gzip stream is damaged or cut short ({error}).",
                   "Fetch or compress the file again.")
        faults.settle()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.",
                        "Name a file that can be read.") from error


def _decode(text: str, path: Path, line: int) -> Any:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}:{line + error.lineno - 1}: not valid JSON at column {error.colno}: {error.msg}.",
                        "Mend the line; each holds one whole JSON object.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}:{line}: not valid JSON: {error}.", "Mend the line.") from None
    _check_unicode(value, text, f"{path}:{line}")
    return value


def _check_unicode(value: Any, text: str, place: str) -> None:
    """Refuse half a surrogate pair: JSON can spell it, UTF-8 cannot hold it, so a later write would fail."""
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise UserError(f"{place}: a \\u escape is half of a surrogate pair.",
                            "Write the character itself.") from None


def _array_items(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    """Yield (place, item) of a JSON list, decoding item by item so that each one's line is known."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    position = _skip(text, 0)
    if text[position] != "[":
        raise UserError(f"{path}:1: the file should be a JSON list of objects.", "Wrap the objects in [ and ].")
    position = _skip(text, position + 1)
    if text[position : position + 1] == "]":
        raise UserError(f"{path}:1: the list is empty.", "Give it at least one object.")
    line, counted, item = 1, 0, 0
    while True:
        item += 1
        line, counted = line + text.count("\n", counted, position), position
        place = f"{path}:{line} (item {item})"
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            at = line + text.count("\n", position, error.pos) if isinstance(error, json.JSONDecodeError) else line
            raise UserError(f"{path}:{at} (item {item}): not valid JSON: {getattr(error, 'msg', error)}.",
                            "Mend the file, or fetch it again.") from None
        _check_unicode(value, text[position:end], place)
        yield place, value
        position = _skip(text, end)
        after, position = text[position : position + 1], _skip(text, position + 1)
        if after == "]":
            break
        if after != ",":
            at = line + text.count("\n", counted, end)
            raise UserError(f"{path}:{at} (item {item}): not valid JSON: a comma or the closing bracket must follow.",
                            "Mend the file, or fetch it again.")
    if position < len(text):
        raise UserError(f"{path}:{1 + text.count(chr(10), 0, position)}: there is text after the list.", "Remove it.")


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{place}: not a JSON object.", 'Write {"field": value, …}.')
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f'the field "{next(n for n in names if names.count(n) > 1)}" is given twice')
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
