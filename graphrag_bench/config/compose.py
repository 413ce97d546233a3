"""Compose one cell's configuration: pages by Hydra, then the typed overrides, each checked against what it sets."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from graphrag_bench.config import sources
from graphrag_bench.config.overrides import Cell, Override
from graphrag_bench.config.schema import GROUPS, PLAIN_GROUPS, RUN, SELECTORS, settings_faults, value_fault
from graphrag_bench.config.sources import Sources
from graphrag_bench.errors import UserError
from graphrag_bench.pipeline.plan import FIELDS
from graphrag_bench.pipeline.wiring import REPEAT
from graphrag_bench.registry import REGISTRY, REQUIRED, Setting, nearest


@dataclass(frozen=True)
class Composed:
    """A cell's configuration as plain data.

    ``faults`` are all that is wrong with it, method page apart (the planner checks that); ``unused`` maps each override
    this cell has no use for to the fault it is, unless another cell of the sweep uses it.
    """

    config: dict[str, Any]
    sources: Sources
    faults: list[UserError] = field(default_factory=list)
    unused: dict[str, UserError] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)


Made = dict[tuple[tuple[str, str], ...], Any]  # the pages chosen -> what Hydra made of them


def compose(cell: Cell, made: Made | None = None) -> Composed:
    """Compose one cell; faults of single settings are collected, what makes composing impossible is raised.

    Args:
        cell: its overrides.
        made: a memory for the cells of one sweep, which choose the same pages again and again.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    own = next((item for item in cell if item.page is not None), None)  # a method that stands in no file
    chosen = {item.key: str(item.value) for item in cell if item.is_group and item is not own}
    choices = {**_defaults(), **chosen}
    places = {item.key: item.place for item in cell if item.is_group}
    sources.page("method", choices["method"], places.get("method", ""))
    wished = _requires(choices["method"]) if own is None else _wished(own.page)
    required = {group: name for group, name in wished.items() if group not in chosen}
    made, chosen_pages = {} if made is None else made, tuple((choices := choices | required).items())
    if chosen_pages not in made:
        for group, name in choices.items():
            place = f"the method {choices['method']} requires {group}" if group in required else places.get(group, "")
            sources.read_page(sources.page(group, name, place))  # what is no page is said by name and line, not by Hydra
        made[chosen_pages] = _hydra(choices)
    cfg = deepcopy(made[chosen_pages])
    values = sorted((item for item in cell if not item.is_group), key=lambda item: not _selects(item.key))
    where = Sources(choices, {item.key: item.place for item in values})
    if own is not None:
        OmegaConf.update(cfg, "method", dict(own.page or {}), merge=False)
        files = {group: name for group, name in choices.items() if group != "method"}
        where = Sources(files, {item.key: item.place for item in (own, *values)})
        choices["method"] = str(own.value)
    unused: dict[str, UserError] = {}
    for item in values:
        fault = _usable(item, OmegaConf.to_container(cfg, resolve=False))
        if fault is not None:
            unused[item.text] = fault
        elif item.delete:
            if fault := _delete(cfg, item):
                unused[item.text] = fault
        else:
            _take_away(cfg, item)
            _update(cfg, item)
    try:
        config = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        key = error.full_key or ""
        raise UserError(
            f"{where.locate(*key.split('.'))}: the setting {key} has no usable value ({str(error).splitlines()[0]}).",
            f"Give {key}=… on the command line or in the page.",
        ) from error
    assert isinstance(config, dict)
    plain: dict[str, Any] = _named(config)
    _fill(plain)
    return Composed(plain, where, _faults(plain, where), unused, choices)


def _hydra(choices: Mapping[str, str]) -> Any:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    own, *outside = sources.roots()
    path = [f"hydra.searchpath=[{','.join(f'file://{folder}' for folder in outside)}]"] if outside else []
    try:
        GlobalHydra.instance().clear()  # a notebook may have left an initialised Hydra behind
        with initialize_config_dir(str(own), version_base="1.3"):
            cfg = hydra_compose("config", overrides=[*path, *(f"{group}={name}" for group, name in choices.items())])
    except YAMLError as error:  # Hydra's loader is stricter than ours: it refuses a key given twice
        raise sources.yaml_fault(error) from error
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise UserError(
            f"The pages cannot be composed: {str(error).splitlines()[0]}", "Mend the page it names."
        ) from error
    OmegaConf.set_struct(cfg, False)
    return cfg


def _defaults() -> dict[str, str]:
    listed = sources.read_page(sources.roots()[0] / "config.yaml")["defaults"]
    return {group: name for entry in listed if isinstance(entry, dict) for group, name in entry.items()}


def _requires(method: str) -> dict[str, str]:
    for path in sources.lineage("method", method):  # nearest first: a page's own wish stands above its parent's
        if wish := sources.read_page(path).get("requires"):
            if not isinstance(wish, dict):
                return {}  # the planner says it
            unknown = [group for group in wish if group not in GROUPS]
            if unknown:
                raise UserError(
                    f"{sources.shown(path)}:{sources.lines(path)[('requires',)]}: requires names the group "
                    f"{unknown[0]!r}, which does not exist.",
                    nearest(unknown[0], GROUPS),
                )
            return {str(group): str(name) for group, name in wish.items()}
    return {}


def _wished(page: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the groups' pages that a page in no file requires; a group that does not exist is the planner's to say."""
    return {group: str(name) for group, name in _mapping((page or {}).get("requires")).items() if group in GROUPS}


def _selects(key: str) -> bool:
    group, _, name = key.partition(".")
    return any(selector.key == name for selector in SELECTORS.get(group, ()))


def _take_away(cfg: Any, item: Override) -> None:
    """Remove with an optional component that gives way to another, or to null, what the page sets of it alone."""
    from omegaconf import OmegaConf

    group, _, key = item.key.partition(".")
    if not any(key == one.key and not one.required for one in SELECTORS.get(group, ())):
        return
    values: Any = OmegaConf.to_container(cfg[group], resolve=False)
    try:
        known, _ = group_settings(group, values)
        kept, _ = group_settings(group, {**values, key: item.value})
    except UserError:  # a component that does not exist is said where it is named
        return
    for name in values:
        if name in known and name not in kept:
            del cfg[group][name]


def _update(cfg: Any, item: Override) -> None:
    from omegaconf import OmegaConf

    OmegaConf.update(cfg, item.key, item.value, merge=False, force_add=True)


def _delete(cfg: Any, item: Override) -> UserError | None:
    from omegaconf import DictConfig

    *parents, last = item.key.split(".")
    node = cfg
    for part in parents:
        node = node.get(part) if isinstance(node, DictConfig) else None
    if not isinstance(node, DictConfig) or last not in node:
        return UserError(f"{item.place}: there is no {item.key} to remove.", "Leave it out.")
    del node[last]
    return None


def group_settings(group: str, values: Mapping[str, Any]) -> tuple[dict[str, Setting], str]:
    """Return what a group may set, given its selectors, and who takes it; raise UserError for an unknown component."""
    settings = dict(PLAIN_GROUPS.get(group, {}))
    owners: list[str] = []
    taken: set[str] = set()  # the types that the components chosen so far are given
    for key, kind, required, taken_as in SELECTORS.get(group, ()):
        if owners and taken_as and taken_as not in taken:
            continue
        settings[key] = Setting(key, str, REQUIRED) if required else Setting(key, str | None, None)
        if (name := values.get(key)) is not None:
            component = REGISTRY.get(kind, str(name))
            settings |= component.settings
            taken |= {getattr(port.annotation, "__name__", "") for port in component.ports}
            owners.append(f"{kind} {component.name}")
        elif not required and not owners:
            break  # an extractor without a builder, reports without communities: nobody would read them
    if not owners and group not in PLAIN_GROUPS:
        return settings, f"a run without {group}"
    return settings, group if group in PLAIN_GROUPS else " with ".join(owners) or group


def _usable(item: Override, config: Any) -> UserError | None:
    if item.delete:
        return None  # it has to be there, and that is all
    try:
        return _accepts(item, config)
    except UserError:  # the component it would set does not exist; that is said where it is named
        return None


def _accepts(item: Override, config: Any) -> UserError | None:
    """Return why this cell has no use for an override, or None."""
    group, *rest = item.key.split(".")
    where = item.place
    if not rest:
        if group in RUN:
            return None
        return UserError(
            f"{where}: there is no setting called {group!r}.", nearest(group, [*RUN, *GROUPS, "experiment"])
        )
    if group == "method":
        return _method_accepts(rest, config.get("method", {}), where)
    if group not in GROUPS:
        return UserError(f"{where}: there is no group called {group!r}.", nearest(group, GROUPS))
    settings, owner = group_settings(group, config.get(group, {}))
    if rest[0] in settings:
        return None
    return UserError(f"{where}: {owner} has no setting {rest[0]!r}.", nearest(rest[0], settings))


def _method_accepts(rest: Sequence[str], page: Mapping[str, Any], where: str) -> UserError | None:
    """A step, converter or section must be on the page; what it may set is the planner's to check, by its signature."""
    field, *inner = rest
    name = page.get("name", "the method")
    if field == "retrieve" and inner:
        return _steps_accept(inner, _mapping(page.get(field)), (f"{name} has nothing called", " under retrieve"), where)
    if field in ("question", "context") and inner:
        known = _mapping(page.get(field))
        if inner[0] not in known:
            return UserError(
                f"{where}: {name} has nothing called {inner[0]!r} under {field}.", nearest(inner[0], known)
            )
        return None
    if field == "answer" and inner:
        answer = _mapping(page.get("answer"))
        generator = REGISTRY.get("generator", str(answer.get("generator")))
        if inner[0] not in {"generator", *generator.settings}:
            return UserError(
                f"{where}: generator {generator.name} has no setting {inner[0]!r}.",
                nearest(inner[0], generator.settings),
            )
        return None
    if field == "requires":  # it chooses pages, and is read before any override is
        return UserError(f"{where}: requires is the page's own wish.", "Name the group itself, such as graph=kg.")
    fields = [name for name in FIELDS if name != "requires"]
    return (
        None if field in fields else UserError(f"{where}: a method has no setting {field!r}.", nearest(field, fields))
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _steps_accept(rest: Sequence[str], steps: Mapping[str, Any], said: tuple[str, str], where: str) -> UserError | None:
    """A step, or what is set of it, must be there; so must the steps of a loop, however deep."""
    step, *inner = rest
    if step not in steps:
        return UserError(f"{where}: {said[0]} {step!r}{said[1]}.", nearest(step, steps))
    values = _mapping(steps[step])
    if not inner:
        return None
    if "repeat" not in values:
        return _step_accepts(step, inner[0], values, where)
    loop = _mapping(values["repeat"])
    if inner[0] != "repeat":
        fix = f"Write {step}.repeat.{inner[0]}." if inner[0] in REPEAT else nearest(inner[0], ["repeat"])
        return UserError(f"{where}: {step} repeats steps and has no setting {inner[0]!r}.", fix)
    if len(inner) > 1 and inner[1] not in REPEAT:
        return UserError(f"{where}: loop {step} has no setting {inner[1]!r}.", nearest(inner[1], REPEAT))
    if len(inner) > 2 and inner[1] == "steps":
        return _steps_accept(inner[2:], _mapping(loop.get("steps")), (f"loop {step} has no step called", ""), where)
    return None


def _step_accepts(step: str, name: str, values: Mapping[str, Any], where: str) -> UserError | None:
    operator = REGISTRY.get("operator", str(values.get("operator")))
    known = {"operator", "join", *operator.settings, *(port.name for port in operator.ports)}
    if name in known:
        return None
    return UserError(f"{where}: step {step} ({operator.name}) has no setting {name!r}.", nearest(name, known))


def _named(value: Any) -> Any:
    """Return plain data whose keys are texts: YAML reads a step called 1 or on as a number or a truth value."""
    if isinstance(value, dict):
        return {str(key): _named(part) for key, part in value.items()}
    return [_named(part) for part in value] if isinstance(value, list) else value


def _fill(config: dict[str, Any]) -> None:
    """Give the run's own fields and the plain groups their defaults where a page or ``~key`` leaves them out."""
    for values, settings in ((config, RUN), *((config[group], settings) for group, settings in PLAIN_GROUPS.items())):
        for name, setting in settings.items():
            if isinstance(values, dict) and setting.default is not REQUIRED:
                values.setdefault(name, setting.default)


def _faults(config: Mapping[str, Any], where: Sources) -> list[UserError]:
    own = {key: value for key, value in config.items() if key not in GROUPS}
    faults = settings_faults(own, RUN, where.locate, (), "a run")
    wrong = {name: own[name] for name in RUN if name in own and value_fault(own[name], RUN[name], "", "")}
    for group in dict.fromkeys((*SELECTORS, *PLAIN_GROUPS)):
        values = config.get(group) or {}
        try:
            settings, owner = group_settings(group, values)
        except UserError as error:
            faults.append(UserError(f"{where.locate(group, _unknown(group, values))}: {error.problem}", error.fix))
            continue
        # a page that takes a run's field over (seed: ${seed}) does not repeat its fault
        fresh = {name: value for name, value in values.items() if name not in wrong or wrong[name] != value}
        faults.extend(settings_faults(fresh, settings, where.locate, (group,), owner))
    return faults


def _unknown(group: str, values: Mapping[str, Any]) -> str:
    """Return the selector of a group that names no component there is."""
    for key, kind, *_ in SELECTORS[group]:
        name = values.get(key)
        if name is not None and str(name) not in {component.name for component in REGISTRY.all(kind)}:
            return key
    return SELECTORS[group][0].key
