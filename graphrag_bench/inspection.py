"""What there is to see: the catalogue of components and pages, a composed configuration, a finished run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphrag_bench.config import sources
from graphrag_bench.config.schema import type_name
from graphrag_bench.errors import UserError
from graphrag_bench.registry import KINDS, REGISTRY, REQUIRED, Component, nearest

PAGES = ("method", "experiment")


def listing(kind: str | None, *, as_json: bool) -> str:
    """Return the catalogue, or one kind of it, made from the signatures.

    Args:
        kind: a kind of component, ``method`` or ``experiment``; None for all.
        as_json: JSON instead of text.
    """
    known = (*KINDS, *PAGES)
    if kind is not None and kind.rstrip("s") in known:
        kind = kind.rstrip("s")
    if kind is not None and kind not in known:
        raise UserError(f"There is no kind called {kind!r}.", nearest(kind, known))
    found = {name: _entries(name) for name in ([kind] if kind else known)}
    if as_json:
        return json.dumps(found[kind] if kind else found, ensure_ascii=False, indent=2)
    return "\n".join(_section(name, entries) for name, entries in found.items())


def _entries(kind: str) -> list[dict[str, Any]]:
    if kind in PAGES:
        return [_page(kind, name, path) for name, path in sources.pages(kind).items()]
    return [_component(component) for component in REGISTRY.all(kind)]


def _page(kind: str, name: str, path: Path) -> dict[str, Any]:
    page = sources.read_page(path)
    about = page.get("name") or page.get("description") or ""
    row = path.read_text("utf-8").partition("\n")[0].removeprefix("#").strip()
    return {
        "name": name,
        "kind": kind,
        "summary": f"{about}: {row}" if kind == "method" else about,
        "source": page.get("source", ""),
        "file": sources.shown(path),
    }


def _component(component: Component) -> dict[str, Any]:
    return {
        "name": component.name,
        "kind": component.kind,
        "summary": component.summary,
        "takes": {port.name: type_name(port.annotation) for port in component.ports},
        "settings": {
            name: {
                "type": type_name(setting.annotation),
                "default": "required" if setting.default is REQUIRED else setting.default,
            }
            for name, setting in component.settings.items()
        },
        "returns": type_name(component.returns),
        "needs": list(component.needs),
        "where": component.where,
    }


def _section(kind: str, entries: Sequence[dict[str, Any]]) -> str:
    width = max((len(entry["name"]) for entry in entries), default=0)
    lines = [f"{kind} ({len(entries)})"]
    for entry in entries:
        lines.append(f"  {entry['name']:<{width}}  {entry['summary']}")
        if entry.get("takes") or entry.get("settings"):
            settings = ", ".join(f"{name}={facts['default']}" for name, facts in entry["settings"].items())
            takes = ", ".join(entry["takes"])
            lines.append(
                f"  {'':<{width}}  ({takes}{'; ' if takes and settings else ''}{settings}) -> {entry['returns']}"
            )
    return "\n".join(lines) + "\n"


def show(arguments: Sequence[str], *, config: bool) -> str:
    """Return what a run would be made of, or what a finished run's folder holds.

    Args:
        arguments: overrides, or one folder of a finished run.
        config: the whole composed configuration instead of the method's page and chain.
    """
    if len(arguments) == 1 and "=" not in arguments[0]:
        return _finished(Path(arguments[0]))
    import yaml

    from graphrag_bench.cells import cells

    cell = cells(arguments)[0][0]
    if config:
        return str(yaml.safe_dump(cell.config, sort_keys=False, allow_unicode=True))
    path = sources.page("method", cell.method)
    return f"# {sources.shown(path)}\n{path.read_text('utf-8')}\nchain: {cell.plan.line()}\n"


def draw(arguments: Sequence[str], out: str | None) -> str:
    """Draw a method's wiring as SVG; return what was written, or the drawing itself.

    Args:
        arguments: overrides; of a sweep the first cell is drawn.
        out: the file; None for ``<method>.svg`` here, ``-`` for the drawing itself.
    """
    from graphrag_bench.cells import cells
    from graphrag_bench.report.drawing import draw as drawn
    from graphrag_bench.store.faults import disk_faults, user_path

    if any("=" not in text for text in arguments):
        raise UserError(f"{arguments[0]!r} is no setting: a finished run is not drawn.", "Write show method=hipporag --draw.")
    cell = cells(arguments)[0][0]
    row = sources.page("method", cell.method).read_text("utf-8").partition("\n")[0]
    picture = drawn(cell.plan, " ".join(row.removeprefix("#").split()) if row.startswith("#") else "")
    if out == "-":
        return picture
    path = user_path(out or f"{cell.method.replace('/', '_')}.svg")
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "lies in a folder that does not exist"
        raise UserError(f"The drawing cannot be written: {path} {problem}.", "Give --out=FILE, or --out=- to print it.")
    with disk_faults("write the drawing", path):
        path.write_text(picture, "utf-8")
    return f"wrote {path}"


def _finished(folder: Path) -> str:
    path = folder / "run.json"
    if not path.is_file():
        raise UserError(
            f"{folder} is not the folder of a finished run: it has no run.json.",
            "Give OUTPUT/<method>/<dataset>, or overrides such as method=hipporag.",
        )
    try:
        record = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is damaged: {error}.", "Run the cell again; its replies are in the store.") from error
    return json.dumps(record, ensure_ascii=False, indent=2)
