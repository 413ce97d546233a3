"""Overrides as typed on the command line, in Hydra's grammar, and their expansion into the cells of a sweep."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_bench.config import sources
from graphrag_bench.config.schema import GROUPS, holds_secret
from graphrag_bench.errors import Faults, UserError
from graphrag_bench.registry import nearest

COMMAND_LINE = "on the command line"


@dataclass(frozen=True)
class Override:
    """One ``key=value``. ``text`` is as typed; ``delete`` is Hydra's ``~key``; ``origin`` is where it was written.

    A composition chooses a method that stands in no file: ``page`` is the method's page. ``note`` is for the run's reader.
    """

    key: str
    value: Any
    text: str
    delete: bool = False
    origin: str = COMMAND_LINE
    page: Mapping[str, Any] | None = None
    note: str = ""

    @property
    def place(self) -> str:
        """Where it stands, for the start of a sentence."""
        return f"{self.origin}, {self.key}=…" if holds_secret(self.key, self.value) else f"{self.origin}, {self.text}"

    @property
    def is_group(self) -> bool:
        """Whether it chooses a page of a group."""
        return self.key in GROUPS


Cell = tuple[Override, ...]


def parse(texts: Sequence[str]) -> list[list[Override]]:
    """Return for each text its alternatives: one, or several where it lists choices (``a=1,2``)."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    parser = OverridesParser.create()
    out = []
    for text in texts:
        try:
            parsed = _read(parser, text)
            listed = (
                list(parsed.sweep_string_iterator()) if parsed.is_sweep_override() and not parsed.is_delete() else []
            )
        except HydraException as error:
            reason = str(error).split("\n")[0].rstrip(".")
            raise UserError(
                f"The override {text!r} cannot be read: {reason}.",
                "Write key=value; a text with brackets or commas wants quotes inside the shell's: 'key=\"value\"'.",
            ) from error
        key = parsed.key_or_group
        if not key:
            raise UserError(f"The override {text!r} has no key.", "Write key=value.")
        if parsed.is_delete():
            out.append([Override(key, None, text, delete=True)])
        elif parsed.is_sweep_override():
            out.append([_single(parser, key, value) for value in listed])
        else:
            out.append([Override(key, _value(parsed), text)])
    return out


def _read(parser: Any, text: str) -> Any:
    """Parse one override; a plain text that Hydra's grammar lacks letters for (``~/out``, ``Straße``) is taken as it is."""
    from hydra.errors import HydraException

    try:
        return parser.parse_override(text)
    except HydraException:
        key, equals, value = text.partition("=")
        if not equals or set(value) & set(",[]{}()'\"$\\"):
            raise
        return parser.parse_override(f'{key}="{value}"')


def _single(parser: Any, key: str, value: str) -> Override:
    text = f"{key}={value}"
    return Override(key, _value(parser.parse_override(text)), text)


def _value(parsed: Any) -> Any:
    from hydra.core.override_parser.types import QuotedString

    value = parsed.value()
    return value.text if isinstance(value, QuotedString) else value


def expand(texts: Sequence[str], multirun: bool) -> tuple[list[Cell], list[str]]:
    """Return the cells of a run and the keys that differ between them.

    ``experiment=NAME`` brings in a page with ``overrides:`` (a list) and ``sweep:`` (a mapping of lists); what is typed
    stands above it. Commas make a sweep with ``-m`` only, so that a slip is not a bill.
    """
    typed = parse(texts)
    names = [options for options in typed if options[0].key == "experiment"]
    typed = [options for options in typed if options[0].key != "experiment"]
    base: dict[str, list[Override]] = {}
    for options in names:
        for option in options:
            if len(options) > 1:
                raise UserError("One experiment at a time.", "Run the command once for each.")
            multirun = True
            for overrides in _experiment(str(option.value), option.place):
                base[overrides[0].key] = overrides
    for options in typed:
        if len(options) > 1 and not multirun:
            listed = ",".join(str(option.value) for option in options)
            raise UserError(
                f"{options[0].key}={listed} lists several values.",
                f"Add -m to run them all, or quote the value: '{options[0].key}=\"{listed}\"'.",
            )
        base[options[0].key] = options
    swept = [key for key, options in base.items() if len(options) > 1]
    return [tuple(cell) for cell in itertools.product(*base.values())], swept


def report(texts: Sequence[str]) -> dict[str, Any]:
    """Return what a run's experiment page wants reported: name of a report -> the metric, or columns, it is about."""
    from graphrag_bench.report.experiment import REPORTS

    wanted: dict[str, Any] = {}
    for (item, *_) in parse([text for text in texts if text.partition("=")[0] == "experiment"]):
        path = sources.page("experiment", str(item.value), item.place)
        listed = sources.read_page(path).get("report") or {}
        where = f"{sources.shown(path)}:{sources.lines(path).get(('report',), 1)}"
        if not isinstance(listed, dict):
            raise UserError(f"{where}: report is a mapping of a report to its metric.", "Write report: {pareto: recall@5}.")
        for name, about in listed.items():
            if name not in REPORTS:
                raise UserError(f"{where}: there is no report called {name!r}.", nearest(str(name), REPORTS))
            try:
                wanted[name] = REPORTS[name].about(about)
            except UserError as error:
                raise UserError(f"{where}: {error.problem}", error.fix) from error
    return wanted


def _experiment(name: str, where: str) -> list[list[Override]]:
    path = sources.page("experiment", name, where)
    page = sources.read_page(path)
    unknown = page.keys() - {"description", "overrides", "sweep", "compose", "report"}
    if unknown:
        raise UserError(
            f"{sources.shown(path)}: an experiment has description, overrides, sweep, compose and report, "
            f"not {sorted(unknown)[0]!r}.",
            "Move settings into overrides.",
        )
    fixed = page.get("overrides") or []
    sweep = page.get("sweep") or {}
    if not isinstance(fixed, list) or not isinstance(sweep, dict):
        raise UserError(
            f"{sources.shown(path)}: overrides is a list of key=value, sweep a mapping of lists.", "Mend the page."
        )
    parsed = _written([str(text) for text in fixed], f"{sources.shown(path)}:{sources.lines(path).get(('overrides',), 1)}")
    for key, values in sweep.items():
        if not isinstance(values, list) or not values:
            raise UserError(
                f"{sources.shown(path)}:{sources.lines(path)[('sweep', key)]}: {key} wants a list of values.",
                f"Write {key}: [one, two].",
            )
        spelled = [f"{key}={'null' if value is None else value}" for value in values]
        listed = _written(spelled, f"{sources.shown(path)}:{sources.lines(path)[('sweep', key)]}")
        parsed.append([option for options in listed for option in options])
    if "compose" in page:
        made = _composed(page["compose"], f"{sources.shown(path)}:{sources.lines(path)[('compose',)]}")
        named = [option for options in parsed if options[0].key == "method" for option in options]
        parsed = [*(options for options in parsed if options[0].key != "method"), [*named, *made]]
    return parsed


def _composed(spec: Any, origin: str) -> list[Override]:
    """Return one choice of the method for each composition that an experiment's page asks for."""
    from graphrag_bench.pipeline.compositions import choose

    try:
        pages, left_out = choose(spec, origin)
    except UserError as error:
        raise error if isinstance(error, Faults) else UserError(f"{origin}: {error.problem}", error.fix) from error
    note = f"{left_out} longer compositions were left out (most: {len(pages)})." if left_out else ""
    return [
        Override("method", slug, f"method={page['name']}", origin=origin, page=page, note=note)
        for slug, page in pages.items()
    ]


def _written(texts: Sequence[str], origin: str) -> list[list[Override]]:
    """Parse overrides that stand in a page, and keep in mind where."""
    try:
        return [[replace(option, origin=origin) for option in options] for options in parse(texts)]
    except UserError as error:
        raise UserError(f"{origin}: {error.problem}", error.fix) from error
