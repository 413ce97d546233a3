"""Where configuration comes from: the folders of pages, and the file and line of every key."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from graphrag_bench.errors import UserError
from graphrag_bench.registry import nearest


@cache
def roots() -> tuple[Path, ...]:
    """Return the folders that hold pages: the project's own conf/, then those of installed packages.

    A package announces its folder under the entry-point group ``graphrag_bench.conf``; the value names a package and the
    folder is its ``conf``.
    """
    package = Path(str(files("graphrag_bench")))
    own = package / "_conf" if (package / "_conf").is_dir() else package.parent / "conf"
    if not own.is_dir():
        raise UserError("The folder conf/ with the method pages is missing.", "Re-install graphrag-bench.")
    outside = []
    for entry in entry_points(group="graphrag_bench.conf"):
        try:
            outside.append(Path(str(files(entry.module))) / "conf")
        except ImportError as error:
            raise UserError(
                f"The entry point {entry.name} = {entry.value} (group graphrag_bench.conf) cannot be imported: {error}.",
                "Re-install the package that announces it, or remove it.",
            ) from error
    for folder in outside:
        if not folder.is_dir():
            raise UserError(
                f"A package announces configuration pages in {folder}, which is not a folder.",
                "Re-install that package.",
            )
    return (own, *sorted(outside))


def pages(group: str) -> dict[str, Path]:
    """Return the pages of a group by name (``original/hipporag`` for one in a sub-folder)."""
    found: dict[str, Path] = {}
    for root in roots():
        folder = root / group
        for path in sorted(folder.rglob("*.yaml")):
            found.setdefault(path.relative_to(folder).with_suffix("").as_posix(), path)
    return found


def page(group: str, name: str, where: str = "") -> Path:
    """Return a page's file; raise UserError with the nearest name, and with ``where`` it was asked for if given."""
    known = pages(group)
    if name not in known:
        raise UserError(f"{f'{where}: ' if where else ''}There is no {group} called {name!r}.", nearest(name, known))
    return known[name]


def read_page(path: Path) -> dict[str, Any]:
    """Return a page as plain data; raise UserError naming file and line for what is not YAML or not a mapping."""
    try:
        value = yaml.safe_load(path.read_text("utf-8"))
    except yaml.YAMLError as error:
        raise yaml_fault(error, path) from error
    except UnicodeDecodeError as error:
        raise UserError(f"{shown(path)}: the page is not UTF-8 text.", "Save it as UTF-8.") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(
            f"{shown(path)}:1: a page is a mapping of settings, and this is a {type(value).__name__}.",
            "Write key: value lines.",
        )
    return value


def yaml_fault(error: yaml.YAMLError, path: Path | None = None) -> UserError:
    """Return what is wrong with a page's YAML, naming file and line; the page is the one the error names unless given."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    place = shown(path or Path(mark.name if mark else "conf"))
    return UserError(f"{place}:{mark.line + 1 if mark else 1}: this is not valid YAML ({problem}).", "Mend the line.")


def shown(path: Path) -> str:
    """Return a page's path as a person would name it: from the conf folder on."""
    for root in roots():
        if path.is_relative_to(root):
            return (Path("conf") / path.relative_to(root)).as_posix()
    return path.as_posix()


@cache
def lines(path: Path) -> dict[tuple[str, ...], int]:
    """Return the line of every key of a page, by its path of keys."""
    found: dict[tuple[str, ...], int] = {}

    def walk(node: yaml.Node | None, prefix: tuple[str, ...]) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = (*prefix, str(key.value))
                found[name] = key.start_mark.line + 1
                walk(value, name)

    walk(yaml.compose(path.read_text("utf-8")), ())
    return found


def lineage(group: str, name: str, below: tuple[str, ...] = (), where: str = "") -> list[Path]:
    """Return a page and the pages it builds on (its defaults list, same group), nearest first.

    Args:
        group: the group.
        name: the page.
        below: the pages that build on it, for the search of a circle.
        where: the place that names it.
    """
    path = page(group, name, where)
    found = [path]
    entries = read_page(path).get("defaults", [])
    where = f"{shown(path)}:{lines(path).get(('defaults',), 1)}"
    if not isinstance(entries, list):
        raise UserError(f"{where}: defaults is a list of pages, and this is {entries!r}.", "Write [page].")
    for entry in entries:
        if isinstance(entry, str) and entry != "_self_":
            parent = entry.split("@")[0].removeprefix(f"/{group}/")
            if parent in (*below, name):
                raise UserError(f"{where}: the page builds on {parent}, which builds on it.", "Break the circle.")
            found.extend(lineage(group, parent, (*below, name), where))
    return found


class Sources:
    """Says where a path of keys of one composed configuration was written."""

    def __init__(self, choices: dict[str, str], overrides: dict[str, str]) -> None:
        self._choices = choices
        self._files: dict[str, list[Path]] = {}  # group -> its page and those it builds on
        self._overrides = overrides  # dotted key -> where the override stands, and its text

    def locate(self, *path: str) -> str:
        """Return "conf/method/x.yaml:7", or "on the command line: a.b=1" for what an override wrote."""
        for depth in range(len(path), 0, -1):
            dotted = ".".join(path[:depth])
            if dotted in self._overrides:
                return self._overrides[dotted]
            if found := self._in_pages(path[:depth]):
                return found
        return "conf/config.yaml"

    def _in_pages(self, path: Sequence[str]) -> str:
        group, rest = path[0], tuple(path[1:])
        if group in self._choices:
            if group not in self._files:
                self._files[group] = lineage(group, self._choices[group])
            for file in self._files[group]:
                if not rest:
                    return f"{shown(file)}:1"
                if rest in lines(file):
                    return f"{shown(file)}:{lines(file)[rest]}"
            return ""
        own = roots()[0] / "config.yaml"
        return f"conf/config.yaml:{lines(own)[tuple(path)]}" if tuple(path) in lines(own) else ""
