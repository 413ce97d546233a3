"""What a run may set: the run's own fields, and checks of any mapping of settings against the types a component declares."""

import math
import re
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from graphrag_bench.errors import UserError
from graphrag_bench.registry import REQUIRED, Setting, nearest

Locate = Callable[..., str]  # (path parts) -> "conf/method/x.yaml:7", for the start of a sentence

GROUPS = (
    "method", "dataset", "chunking", "graph", "community", "index", "embedder", "llm",
    "evaluation", "execution", "logging",
)


class Selector(NamedTuple):
    """A key of a group that names a component; the component's settings become the group's.

    ``taken_as`` is the type under which a component chosen before takes this one; where none does, there is no such key.
    """

    key: str
    kind: str
    required: bool = True
    taken_as: str = ""


SELECTORS: dict[str, tuple[Selector, ...]] = {
    "dataset": (Selector("loader", "dataset"),),
    "chunking": (Selector("chunker", "chunker"),),
    "graph": (Selector("builder", "builder", False), Selector("extractor", "extractor", False)),
    "community": (
        Selector("clusterer", "clusterer", False),
        Selector("augment", "augmenter", False, "Augment"),
        Selector("partition", "partitioner", False, "Partition"),
        Selector("reports", "reporter", False),
    ),
    "index": (Selector("backend", "index"),),
    "embedder": (Selector("backend", "embedder"),),
    "llm": (Selector("backend", "chat_model"),),
}
STAGES = ("graph", "index", "retrieval", "answer", "score")


_RANGES: dict[str, tuple[float, float]] = {
    "synonym_threshold": (-1, 1), "min_similarity": (-1, 1), "synonym_top_k": (1, math.inf), "k1": (0, math.inf),
    "b": (0, 1), "window": (64, math.inf), "min_parse_rate": (0, 1), "min_entities": (0, math.inf),
    "temperature": (0, math.inf), "budget_money": (0, math.inf), "min_score": (0, 100), "dimensions": (2, math.inf),
    "cluster_size": (2, math.inf), "resolution": (1e-9, math.inf), "link_threshold": (-1, 1), "min_rating": (0, 10),
    "match_cosine": (0, 1), "match_spelling": (0, 1), "quantile": (0, 1), "alpha": (0, 1), "epsilon": (1e-9, 1),
    "p": (1e-9, math.inf), "q": (1e-9, math.inf), "walk_length": (2, math.inf), "iterations": (-1, math.inf),
    "m": (2, math.inf), "passage_edge": (0, math.inf), "passage_weight": (0, math.inf), "is_a_weight": (0, math.inf),
    "max_change": (0, math.inf), "share": (1e-9, 1),
}


def _fields(**fields: tuple[Any, Any, bool]) -> dict[str, Setting]:
    return {name: Setting(name, kind, default, inert) for name, (kind, default, inert) in fields.items()}


# name=(type, default, inert). "Inert" says that the field cannot change an answer or a score; a test wants every field of
# config.yaml and of the groups below classed here.
RUN = _fields(
    output=(str, "runs", True),
    until=(Literal["graph", "index", "retrieval", "answer", "score"], "score", False),
    limit=(int | None, None, False),
    batch_size=(int, 64, True),
    seed=(int, 0, False),
    retrieval_depth=(int, 20, False),
)
INDEX = _fields(
    k1=(float, 1.5, False),
    b=(float, 0.75, False),
    node_text=(Literal["auto", "name", "description", "name+description"], "auto", False),
    relationship_text=(Literal["auto", "name", "description", "triple"], "auto", False),
    community_text=(Literal["summary", "report"], "summary", False),
)
EXECUTION = _fields(
    concurrency=(int, 8, True),
    attempts=(int, 5, True),
    requests_per_minute=(int | None, None, True),
    tokens_per_minute=(int | None, None, True),
    budget_tokens=(int | None, None, True),
    budget_money=(float | None, None, True),
    retry_failed=(bool, False, True),
    redo=(bool, False, True),
    repeats=(int, 1, True),
    min_parse_rate=(float, 0.5, True),
    min_entities=(float, 0.5, True),
)
LOGGING = _fields(display=(Literal["auto", "live", "plain", "none"], "auto", True))
EVALUATION = _fields(
    metrics=(list[str], REQUIRED, False),
    ks=(list[int], REQUIRED, False),
    bootstrap=(int, 2000, False),
    interval=(float, 0.95, False),
    communities=(list[str], [], False),
)
PLAIN_GROUPS = {"index": INDEX, "execution": EXECUTION, "logging": LOGGING, "evaluation": EVALUATION}
_POSITIVE = {
    "limit",
    "batch_size",
    "retrieval_depth",
    "top_k",
    "concurrency",
    "attempts",
    "repeats",
    "budget_tokens",
    "bootstrap",
    "max_tokens",
    "requests_per_minute",
    "tokens_per_minute",
    "tokens",
    "size",
    "max_size", "max_levels", "input_tokens", "report_tokens", "members",
    "max_layers", "stop_size", "max_components", "bic_points", "max_cluster_tokens", "summary_tokens",
    "max_entities", "max_relations", "max_claims", "claim_tokens", "record_tokens", "gleaning_tokens", "summary_threshold",
    "pack_tokens", "reduce_tokens", "map_tokens", "max_points", "hops", "max_paths", "width", "knn", "keywords_per_chunk",
    "neighbours", "content_neighbours", "mean_size", "mu", "walks", "context_size", "epochs", "min_communities",
    "ef_construction", "ef_search", "nlist", "nprobe",
    "keyword_sentences", "nearest_chunks", "max_summaries", "description_chars", "names_a_call", "concept_tokens",
    "max_steps", "max_hops", "top_m", "candidates",
}


# seed: NumPy's generators take no negative one, and to llama.cpp -1 means a seed by chance
_NOT_NEGATIVE = {"seed", "max_findings", "max_depth", "gleaning", "level", "max_level", "max_layer"}
_SHARES = {"interval", "threshold"}


@lru_cache(maxsize=512)
def _adapter(annotation: Any) -> Any:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))


def holds_secret(key: str, value: Any) -> bool:
    """Say whether a setting seems to hold a key or password, which must not reach a file or a message."""
    name = key.rsplit(".", 1)[-1].casefold()
    if name == "api_key_env":
        return isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value)
    if name.endswith("url"):
        return isinstance(value, str) and "@" in value.partition("://")[2].partition("/")[0]
    return name.endswith(("api_key", "apikey", "token", "secret", "password"))


def type_name(annotation: Any) -> str:
    """Return a type as a person would write it."""
    if annotation is type(None):
        return "null"
    if typing.get_origin(annotation) is Literal:
        return " | ".join(str(value) for value in typing.get_args(annotation))
    arguments = typing.get_args(annotation)
    if arguments and typing.get_origin(annotation) not in (list, tuple, dict):
        return " | ".join(type_name(part) for part in arguments)
    name = getattr(annotation, "__name__", str(annotation)).replace("typing.", "")
    inner = ", ".join("…" if part is Ellipsis else type_name(part) for part in arguments)
    return f"{name}[{inner}]" if inner else name


def value_fault(value: Any, setting: Setting, where: str, owner: str) -> UserError | None:
    """Return what is wrong with one value, or None."""
    from pydantic import ValidationError

    name = setting.name
    try:
        _adapter(setting.annotation).validate_python(value, strict=not isinstance(value, list))
    except ValidationError:
        return UserError(
            f"{where}: {owner} wants {name} as {type_name(setting.annotation)}, and found {value!r}.",
            _suggest(value, setting),
        )
    if name in _POSITIVE and isinstance(value, int) and value < 1:
        return UserError(
            f"{where}: {owner} wants {name} to be at least 1, and found {value}.", f"Write {name}: 1 or more."
        )
    if name in _NOT_NEGATIVE and isinstance(value, int) and value < 0:
        return UserError(f"{where}: {owner} wants {name} to be 0 or more, and found {value}.", f"Write {name}: 0.")
    if holds_secret(name, value):
        return UserError(
            f"{where}: {owner} wants no key in {name}.",
            "Put the key into an environment variable, and its name into api_key_env.",
        )
    low, high = _RANGES.get(name, (-math.inf, math.inf))
    if isinstance(value, int | float) and not low <= value <= high:
        wanted = f"from {low:g} to {high:g}" if high < math.inf else f"to be at least {low:g}"
        return UserError(f"{where}: {owner} wants {name} {wanted}, and found {value}.", _suggest(value, setting))
    if name in _SHARES and isinstance(value, int | float) and not 0 < value < 1:
        return UserError(f"{where}: {owner} wants {name} between 0 and 1, and found {value}.", _suggest(value, setting))
    return None


def _suggest(value: Any, setting: Setting) -> str:
    choices = [
        choice
        for part in (setting.annotation, *typing.get_args(setting.annotation))
        if typing.get_origin(part) is Literal
        for choice in typing.get_args(part)
    ]
    if choices:
        return nearest(str(value), [str(choice) for choice in choices])
    return f"The default is {setting.default!r}." if setting.default is not REQUIRED else "Give a value of that type."


def settings_faults(
    values: Mapping[str, Any], settings: Mapping[str, Setting], locate: Locate, path: tuple[str, ...], owner: str
) -> list[UserError]:
    """Return every fault of a mapping of settings: unknown names, wrong types, missing ones.

    Args:
        values: what was written.
        settings: what may be written.
        locate: says where a path of keys stands.
        path: where ``values`` hangs in the configuration.
        owner: who takes the settings, for the sentence.
    """
    faults: list[UserError] = []
    for name, value in values.items():
        if name not in settings:
            faults.append(
                UserError(f"{locate(*path, name)}: {owner} has no setting {name!r}.", nearest(name, settings))
            )
        elif fault := value_fault(value, settings[name], locate(*path, name), owner):
            faults.append(fault)
    for name, setting in settings.items():
        if setting.default is REQUIRED and name not in values:
            faults.append(
                UserError(
                    f"{locate(*path)}: {owner} needs the setting {name}.",
                    f"Give {'.'.join((*path, name))}=… ({type_name(setting.annotation)}).",
                )
            )
    return faults


def filled(values: Mapping[str, Any], settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Return the settings with defaults for what was not written, in the order they are declared."""
    return {name: values.get(name, setting.default) for name, setting in settings.items()}
