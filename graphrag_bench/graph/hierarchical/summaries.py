"""Who writes the summary entities of a cluster: the model, guided by meta types; or nobody, from the members' sentences."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.chunking.tokenizers import Tokenizer
from graphrag_bench.errors import UserError
from graphrag_bench.graph.extraction import EntityRecord
from graphrag_bench.graph.summaries import sentence
from graphrag_bench.graph.tree.extracts import sentences
from graphrag_bench.graph.tree.summaries import fit
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of
from graphrag_bench.llm.window import cut_to_window, prompt_tokens
from graphrag_bench.prompts import prompt, prompt_hash, render

_HERE = "graphrag_bench.graph"
PROMPTS = ("merge", "hierarchy", "hierarchy_ask")
HASH = prompt_hash(_HERE, *PROMPTS)
_NAME = 100  # characters of a name, so that a model that cannot end one is stopped
_LEAST = 64  # tokens of a cluster that are worth a call
_OTHER = "other"
_DECIMALS = 6


class Group(NamedTuple):
    """A cluster of which summary entities are wanted.

    Attributes:
        subject: what it is called in the ledger.
        members: its entities, by rising id.
        vectors: (members, d) their unit vectors.
    """

    subject: str
    members: tuple[EntityRecord, ...]
    vectors: NDArray[Any]


class Written(NamedTuple):
    """The summary entities of a cluster, or why there are none (``kind: message``)."""

    entities: tuple[EntityRecord, ...]
    failure: str | None = None
    cut: bool = False  # some member was shortened or left out to fit the model's window


Summarise = Callable[[Sequence[Group]], Awaitable[Sequence[Written]]]


def most_of(members: int, max_summaries: int) -> int:
    """Return how many summary entities a cluster has at most: never more than half its members, so that layers shrink."""
    return max(1, min(max_summaries, members // 2))


def by_model(
    model: ChatModel, meta_types: Sequence[str], max_summaries: int, summary_tokens: int, description_chars: int
) -> Summarise:
    """Return a writer that asks the model once a cluster.

    What all clusters share stands first: the task, with the meta types. A cluster that does not fit the window is cut by the
    rule of RAPTOR's summaries: longer members share what room there is.

    Raises:
        UserError: The window has no room for a cluster.
    """
    types = list(dict.fromkeys((*meta_types, _OTHER)))
    task = Message("system", render(_HERE, "hierarchy", types=", ".join(types), count=str(max_summaries)))
    asked = f"\n\n{prompt(_HERE, 'hierarchy_ask')}"  # small models have forgotten the task at the end of a long list
    reply_tokens = max_summaries * summary_tokens
    room = model.window - reply_tokens - prompt_tokens((task, Message("user", asked)), model.count)
    if room < _LEAST:
        raise UserError(
            f"The model's window of {model.window:,} tokens leaves {max(room, 0):,} for the entities to sum up.",
            "Take a model with a larger window, or lower graph.summary_tokens.",
        )

    def request(group: Group, lines: Sequence[str]) -> Request:
        turns = (task, Message("user", "\n".join(lines) + asked))
        schema = _schema(types, most_of(len(group.members), max_summaries), description_chars)
        return Request(turns, reply_tokens, "graph", "summary entities", group.subject, schema)

    async def summarise(groups: Sequence[Group]) -> list[Written]:
        whole = [[line(member) for member in group.members] for group in groups]
        fitted = [fit(lines, room, model) for lines in whole]
        replies = await model.ask_all([request(group, lines) for group, lines in zip(groups, fitted, strict=True)])
        return [_read(reply, lines != all_) for reply, lines, all_ in zip(replies, fitted, whole, strict=True)]

    return summarise


def by_extracts(tokenizer: Tokenizer, max_tokens: int) -> Summarise:
    """Return a writer that asks nobody: one summary entity a cluster.

    Members stand by falling cosine with the cluster's centroid, ties by id. The summary is called after the first of them
    ("… and 12 more"), has the members' most frequent type (of equals the first met; "summary" where none has one), and
    says the first sentence of each member's description, the most central first, each once, while they fit.
    """

    def count(text: str) -> int:
        return len(tokenizer.starts(text))

    def extract(group: Group) -> Written:
        wide = np.asarray(group.vectors, np.float64)
        cosine = np.round(wide @ wide.mean(axis=0), _DECIMALS)
        order = np.lexsort((np.arange(len(cosine)), -cosine)).tolist()
        said: dict[str, None] = {}
        left = max_tokens
        for at in order:
            member = group.members[at]
            told = sentence(next(iter(sentences(member.description)), member.name))
            if not said and count(told) > max_tokens:
                said[cut_to_window(told, max_tokens, count)] = None
                break
            if told not in said and (size := count(told)) <= left:
                said[told] = None
                left -= size
        types = Counter(member.type for member in group.members if member.type)
        kind = max(types, key=lambda name: types[name], default="summary")
        name = f"{group.members[order[0]].name} and {len(order) - 1} more"
        return Written((EntityRecord(name, kind, " ".join(said)),))

    async def summarise(groups: Sequence[Group]) -> list[Written]:
        return [extract(group) for group in groups]

    return summarise


def layer_calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a cluster, layer by layer; how many components fit best cannot be known before."""
    found, nodes, each = Calls(), scale.nodes, scale.node_tokens
    fixed = prompt_of(render(_HERE, "hierarchy", types=", ".join(settings["entity_types"]), count="9"))
    most = settings["max_cluster_tokens"]
    for _ in range(settings["max_layers"]):
        if nodes <= max(settings["stop_size"], settings["dimensions"] + 1):
            break
        clusters = max(min(settings["max_components"], nodes // 4), -(-nodes * each // most) if most else 0, 1)
        members = nodes // clusters
        if members < 2:
            break
        reply = most_of(members, settings["max_summaries"]) * settings["summary_tokens"] // 2
        found += Calls.each(clusters, min(fixed + members * each, scale.window), reply, "about")
        nodes, each = clusters * most_of(members, settings["max_summaries"]), scale.node_tokens
    return found


def line(member: EntityRecord) -> str:
    """Return an entity as a prompt shows it."""
    return f"- {member.name}: {member.description}" if member.description else f"- {member.name}"


def _read(reply: Reply, cut: bool) -> Written:
    if reply.failure is not None:
        return Written((), f"{reply.failure.kind}: {reply.failure.message}", cut)
    found: dict[str, EntityRecord] = {}
    for record in reply.data["entities"]:
        name, said = " ".join(record["name"].split()), " ".join(record["description"].split())
        if name and said:
            found.setdefault(name.casefold(), EntityRecord(name, record["type"], said))
    return Written(
        tuple(found.values()), None if found else "empty: no summary entity has a name and a description", cut
    )


def _schema(types: Sequence[str], most: int, description_chars: int) -> dict[str, Any]:
    fields = {
        "name": {"type": "string", "minLength": 1, "maxLength": _NAME},
        "type": {"enum": list(types)},
        "description": {"type": "string", "minLength": 1, "maxLength": description_chars},
    }
    entity = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    listed = {"type": "array", "items": entity, "minItems": 1, "maxItems": most}
    return {
        "type": "object",
        "properties": {"entities": listed},
        "required": ["entities"],
        "additionalProperties": False,
    }
