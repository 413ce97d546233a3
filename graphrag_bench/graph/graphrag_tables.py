"""The tables of a GraphRAG index, of any version: entities and their claims, the hierarchy of communities, reports."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphrag_bench.data.reading import Row
from graphrag_bench.errors import UserError
from graphrag_bench.graph.claims import Claims, claim_of
from graphrag_bench.graph.communities import Hierarchy, ReportRows, Reports
from graphrag_bench.graph.graph import incidence
from graphrag_bench.graph.importing import Tally, unquoted
from graphrag_bench.graph.tables import identifier, labels, number, whole
from graphrag_bench.graph.units import TextUnits

UNITS = ("text_unit_ids", "passage_ids")


class Entities:
    """The entities: a node each, by name and by id, with the text units they were found in."""

    def __init__(self, rows: Sequence[Row], tally: Tally) -> None:
        self.names: list[str] = []
        self.types: list[str] = []
        self.descriptions: list[str] = []
        self.units: list[tuple[int, str]] = []
        self.by_name: dict[str, int] = {}
        self.by_id: dict[str, int] = {}
        for row in rows:
            name = unquoted(row.text("title", "name"))
            if not name:
                tally.add("entities without a name, left out")
                continue
            if name in self.by_name:
                tally.add("entities of a name met before, merged into the first")
            else:
                self.by_name[name] = len(self.names)
                self.names.append(name)
                self.types.append(unquoted(row.text("type", default="")))
                self.descriptions.append(row.text("description", default="").strip())
            node = self.by_name[name]
            self.by_id[identifier(row, "id")] = node
            self.units.extend((node, unit) for unit in labels(row, *UNITS))


def read_claims(rows: Sequence[Row], entities: Entities, units: TextUnits, tally: Tally) -> pa.Table:
    """Return the claims (covariates) about entities, each once, with claims.CLAIM_SCHEMA.

    Args:
        rows: with ``subject_id`` and ``object_id``, which GraphRAG means as names.
        entities: whom they mean, by name or id.
        units: where the claims were found.
        tally: counts claims whose subject is no entity.
    """
    found = Claims()
    for row in rows:
        ends = [unquoted(row.text(end, default="")) for end in ("subject_id", "object_id")]
        subject, target = (entities.by_name.get(end, entities.by_id.get(end)) for end in ends)
        claim = claim_of(
            {
                "subject": ends[0], "object": ends[1], "start": row.text("start_date", default=""),
                "end": row.text("end_date", default=""), "source": row.text("source_text", default=""),
                **{name: row.text(name, default="") for name in ("type", "status", "description")},
            }
        )  # fmt: skip
        unit = identifier(row, "text_unit_id", "passage_id")
        chunks = units.chunks(unit, *filter(None, ends)) if unit else []
        found.add(claim, subject, target, chunks[0] if chunks else -1)
    if found.homeless:
        tally.add("claims whose subject is no entity, left out", found.homeless)
    return found.table()


def read_hierarchy(
    rows: Sequence[Row], nodes: Sequence[Row], entities: Entities, tally: Tally
) -> tuple[Hierarchy, dict[str, int]]:
    """Return the communities, by level and id, and the place of each id among them.

    Args:
        rows: communities, with ``parent`` and ``entity_ids`` since version 1.
        nodes: which entity is in which community of which level, as the versions before said it.
        entities: whom the ids mean.
        tally: counts members that are no entity.

    Raises:
        UserError: An id is given twice, a level is missing, or a parent does not stand right above.
    """
    found: dict[str, tuple[int, Row]] = {}
    for row in rows:
        community, depth = identifier(row, "community", "id"), whole(row, "level")
        if not community or depth is None or depth < 0:
            raise UserError(f"{row.place}: the community has no id or no level.", "Mend the row.")
        if community in found:
            raise UserError(f"{row.place}: the community {community} is given twice.", "Keep one of its rows.")
        found[community] = (depth, row)
    ordered = sorted(found, key=lambda c: (found[c][0], not c.isdecimal(), int(c) if c.isdecimal() else 0, c))
    order = {community: place for place, community in enumerate(ordered)}
    level = np.array([found[community][0] for community in ordered], dtype=np.int32)
    members = _members(ordered, found, nodes, entities, tally)
    if any("parent" in row.fields for row in rows):
        parent = [_parent(*found[community], order, level) for community in ordered]
    else:
        parent = _around(members, level, [found[community][1] for community in ordered])
    for child in range(len(ordered) - 1, -1, -1):  # a community holds its children's nodes too
        if parent[child] >= 0 and (missing := members[child] - members[parent[child]]):
            tally.add("members of a community that its parent lacked, added to it", len(missing))
            members[parent[child]] |= missing
    pairs = np.array([(c, node) for c, inside in enumerate(members) for node in sorted(inside)], np.int64).reshape(
        -1, 2
    )
    matrix = incidence(pairs[:, 0], pairs[:, 1], (len(ordered), len(entities.names)))
    return Hierarchy(level, np.array(parent, dtype=np.int32), matrix), order


def _members(
    ordered: Sequence[str],
    found: dict[str, tuple[int, Row]],
    nodes: Sequence[Row],
    entities: Entities,
    tally: Tally,
) -> list[set[int]]:
    by_community: dict[str, list[int | None]] = defaultdict(list)
    for row in nodes:
        if (community := identifier(row, "community")) and community != "-1":
            by_community[community].append(entities.by_name.get(unquoted(row.text("title", "name"))))
    members = []
    for community in ordered:
        row = found[community][1]
        given = row.fields.get("entity_ids") is not None
        some = [entities.by_id.get(e) for e in labels(row, "entity_ids")] if given else by_community[community]
        inside = {node for node in some if node is not None}
        tally.add("members of a community that are no entity, left out", sum(node is None for node in some))
        members.append(inside)
    return members


def _parent(level: int, row: Row, order: dict[str, int], levels: NDArray[np.int32]) -> int:
    name = identifier(row, "parent")
    if level == 0 and name in ("", "-1"):
        return -1
    place = order.get(name, -1)
    if place < 0 or levels[place] != level - 1:
        raise UserError(
            f"{row.place}: the community stands at level {level}, and its parent {name or 'is missing'}"
            f"{'' if place < 0 else f' at level {levels[place]}'}: not right above it.",
            "Level 0 is the coarsest, without parents; export the index again.",
        )
    return place


def _around(members: Sequence[set[int]], level: NDArray[np.int32], rows: Sequence[Row]) -> list[int]:
    """Return the community of the level above that holds most of each one's members; the oldest files name no parent."""
    home = {(int(level[c]), node): c for c, inside in enumerate(members) for node in inside}
    parent = []
    for community, inside in enumerate(members):
        above = int(level[community]) - 1
        held = Counter(home[above, node] for node in inside if (above, node) in home)
        if above >= 0 and not held:
            raise UserError(
                f"{rows[community].place}: no community of level {above} holds it.", "Export the index again."
            )
        parent.append(min(held, key=lambda c: (-held[c], c)) if held else -1)
    return parent


def read_reports(rows: Sequence[Row], order: dict[str, int], tally: Tally) -> Reports:
    """Return a report a community, in the communities' order; where there is none, it says so."""
    by_community: dict[int, Row] = {}
    for row in rows:
        place = order.get(identifier(row, "community"))
        if place is None:
            tally.add("reports on a community that is not there, left out")
        elif place in by_community:
            tally.add("further reports on a community, left out")
        else:
            by_community[place] = row
    collected = ReportRows()
    for place in range(len(order)):
        found = by_community.get(place)
        if found is None or not (found.text("full_content", "summary", default="")).strip():
            collected.add(failed="missing: the index holds no report on it")
            continue
        collected.add(
            found.text("title", default="").strip(),
            found.text("summary", default="").strip(),
            found.text("full_content", "summary").strip(),
            rating=number(found, "rank", "rating"),
            rating_reason=found.text("rating_explanation", "rank_explanation", default="").strip(),
        )
    return collected.reports()
