"""One registry for every kind of component, fed by decorators and found through entry points.

A component is a typed function (or a class, whose constructor counts). Its signature is its contract: positional
parameters are what it is given (loans and wires), keyword-only parameters are its settings, the return annotation is what
it makes. Nothing is declared twice.

Packages announce components under the entry-point group ``graphrag_bench.<kind>``; the value names a package, whose
modules are imported when that kind is first asked for, so listing or looking up one kind never imports another.
"""

import difflib
import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Any, TypeVar

from graphrag_bench.errors import UserError

KINDS: dict[str, str] = {
    "operator": "a retrieval operator",
    "builder": "a graph builder",
    "extractor": "an extraction of entities and triples from chunks",
    "clusterer": "a way to find the communities of a graph",
    "augmenter": "a way to join similar nodes before they are clustered",
    "partitioner": "a way to divide one layer of nodes into communities",
    "reporter": "a way to write the communities' reports",
    "index": "a backend of vector search",
    "converter": "a question converter",
    "generator": "an answer generator",
    "chunker": "a way to cut documents into chunks",
    "dataset": "a dataset loader",
    "embedder": "a text embedder",
    "chat_model": "a chat model backend",
    "metric": "an answer or retrieval metric",
    "community_metric": "a metric of community quality",
}

T = TypeVar("T", bound=Callable[..., Any])


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED: Any = _Required()


@dataclass(frozen=True)
class Setting:
    """A keyword-only parameter: what a YAML page may set. ``inert`` ones do not change the output."""

    name: str
    annotation: Any
    default: Any
    inert: bool = False


@dataclass(frozen=True)
class Port:
    """A positional parameter: a loan or a wire, by type."""

    name: str
    annotation: Any
    optional: bool


@dataclass(frozen=True)
class Component:
    """A registered component and everything its signature says."""

    kind: str
    name: str
    call: Callable[..., Any]
    ports: tuple[Port, ...]
    settings: dict[str, Setting]
    returns: Any
    where: str
    summary: str
    version: int = 1
    needs: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return "Did you mean X?" for the closest known name, else a list of all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Known: {', '.join(names)}." if names else "None is known."


class Registry:
    """Components by kind and name. Collisions, untyped parameters and unknown names are errors."""

    def __init__(self) -> None:
        self._components: dict[str, dict[str, Component]] = {kind: {} for kind in KINDS}
        self._loaded: set[str] = set()

    def add(self, kind: str, name: str, call: T, **facts: Any) -> T:
        """Register ``call``; raise UserError on a name collision or an untyped parameter."""
        if kind not in KINDS:
            raise UserError(f"There is no kind of component called {kind!r}.", nearest(kind, KINDS))
        component = _describe(kind, name, call, **facts)
        known = self._components[kind].get(name)
        if known is not None and known.where != component.where:
            raise UserError(
                f"Two components of kind {kind} are called {name!r}: {known.where} and {component.where}.",
                "Rename one of them.",
            )
        self._components[kind][name] = component
        return call

    def get(self, kind: str, name: str) -> Component:
        """Return the component; raise UserError naming the nearest known name."""
        self.load(kind)
        try:
            return self._components[kind][name]
        except KeyError:
            raise UserError(f"No {kind} is called {name!r}.", nearest(str(name), self._components[kind])) from None

    def all(self, kind: str) -> list[Component]:
        """Return every component of a kind, by name."""
        self.load(kind)
        return [self._components[kind][name] for name in sorted(self._components[kind])]

    def load(self, kind: str) -> None:
        """Import the packages that announce this kind, once."""
        if kind not in KINDS:
            raise UserError(f"There is no kind of component called {kind!r}.", nearest(kind, KINDS))
        if kind in self._loaded:
            return
        self._loaded.add(kind)
        for entry in sorted(entry_points(group=f"graphrag_bench.{kind}"), key=lambda e: (e.name, e.value)):
            try:
                _import_all(entry.module)
            except ImportError as error:
                self._loaded.discard(kind)
                raise UserError(
                    f"The entry point {entry.name} = {entry.value} (group graphrag_bench.{kind}) cannot be imported: {error}.",
                    "Re-install the package that announces it, or remove it.",
                ) from error


def _import_all(name: str) -> None:
    module = importlib.import_module(name)
    for path in getattr(module, "__path__", []):
        for info in pkgutil.walk_packages([path], prefix=f"{name}."):
            importlib.import_module(info.name)


def _describe(kind: str, name: str, call: Callable[..., Any], **facts: Any) -> Component:
    target = call.__init__ if inspect.isclass(call) else call
    where = f"{call.__module__}:{getattr(call, '__qualname__', name)}"
    try:
        hints = typing.get_type_hints(target)
    except NameError as error:
        raise UserError(
            f"{where}: a type in the signature of {kind} {name!r} cannot be resolved ({error}).",
            "Import the type at run time, not only for type checking.",
        ) from error
    inert = set(facts.pop("inert", ()))
    ports: list[Port] = []
    settings: dict[str, Setting] = {}
    for parameter in inspect.signature(target).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UserError(f"{where}: {kind} {name!r} takes *{parameter.name}.", "Name and type every parameter.")
        if parameter.name not in hints:
            raise UserError(f"{where}: parameter {parameter.name!r} of {kind} {name!r} has no type.", "Annotate it.")
        default = REQUIRED if parameter.default is parameter.empty else parameter.default
        if parameter.kind is parameter.KEYWORD_ONLY:
            settings[parameter.name] = Setting(parameter.name, hints[parameter.name], default, parameter.name in inert)
        else:
            ports.append(Port(parameter.name, _plain(hints[parameter.name]), default is not REQUIRED))
    returns = call if inspect.isclass(call) else hints.get("return")
    if returns is None:
        raise UserError(f"{where}: {kind} {name!r} does not say what it returns.", "Annotate the return type.")
    if unknown := inert - settings.keys():
        raise UserError(f"{where}: {kind} {name!r} calls {', '.join(sorted(unknown))} inert, which it does not take.")
    summary = (inspect.getdoc(call) or "").strip().split("\n")[0]
    known = {key: facts.pop(key) for key in ("version", "needs", "provides") if key in facts}
    return Component(kind, name, call, tuple(ports), settings, returns, where, summary, extra=facts, **known)


def _plain(annotation: Any) -> Any:
    """Strip ``| None`` from an annotation, since an optional port is wired like any other."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(annotation) if part is not type(None)]
        return parts[0] if len(parts) == 1 else annotation
    return annotation


REGISTRY = Registry()


def register(kind: str, name: str, **facts: Any) -> Callable[[T], T]:
    """Decorate a function or class to register it under ``kind`` and ``name``."""

    def decorate(call: T) -> T:
        return REGISTRY.add(kind, name, call, **facts)

    return decorate


def operator(name: str, *, needs: tuple[str, ...] = (), version: int = 1, **facts: Any) -> Callable[[T], T]:
    """Register a retrieval operator; ``needs`` names the graph attributes it reads.

    Further facts are kept: ``prompts``, ``calls`` (what it asks, see llm/estimate.py), ``yields`` (elements a question).
    """
    return register("operator", name, needs=needs, version=version, **facts)
