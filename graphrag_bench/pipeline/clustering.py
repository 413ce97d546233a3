"""What the stage that looks for communities lends a clusterer beside graph and embedder."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from graphrag_bench.community.layered import Augment, Partition, ReportWriter
from graphrag_bench.config.schema import filled
from graphrag_bench.registry import REGISTRY, Component

Group = Mapping[str, Any]
PARTS: dict[Any, tuple[str, str]] = {Augment: ("augment", "augmenter"), Partition: ("partition", "partitioner")}
"""The parts a clusterer may be lent: the port's type, the key of the group that selects it, its kind."""


def parts_of(clusterer: Component, group: Group) -> dict[Any, Component | None]:
    """Return what is selected for each part that a clusterer takes, by the type of its port."""
    ports = [port.annotation for port in clusterer.ports if port.annotation in PARTS]
    chosen = {port: (kind, group.get(key)) for port, (key, kind) in PARTS.items() if port in ports}
    return {port: REGISTRY.get(kind, str(name)) if name else None for port, (kind, name) in chosen.items()}


def bound_parts(clusterer: Component, group: Group) -> dict[Any, Any]:
    """Return the parts with their settings, ready to be lent; None for one that is not selected."""
    found = parts_of(clusterer, group)
    return {port: part and partial(part.call, **filled(group, part.settings)) for port, part in found.items()}


def writes_reports(clusterer: Component, group: Group) -> bool:
    """Say whether a clusterer, with these settings, has the reports written layer by layer while it clusters."""
    writes = clusterer.extra.get("writes")
    return writes is not None and bool(writes(filled(group, clusterer.settings)))


def part_faults(clusterer: Component, group: Group) -> list[tuple[str, str, str]]:
    """Return what is wrong with the parts chosen: the key, the problem, the fix."""
    faults = []
    taken = {port.annotation: port for port in clusterer.ports}
    for port, (key, kind) in PARTS.items():
        name = group.get(key)
        if name and port not in taken:
            problem = f"the clusterer {clusterer.name} takes nothing of kind {kind}, and {name} is given"
            faults.append((key, problem, f"Leave {key} out."))
        elif not name and port in taken and not taken[port].optional:
            known = ", ".join(component.name for component in REGISTRY.all(kind))
            problem = f"the clusterer {clusterer.name} needs something of kind {kind}"
            faults.append((key, problem, f"Write community.{key}= one of: {known}."))
    if ReportWriter in taken and writes_reports(clusterer, group) and not group.get("reports"):
        problem = f"the clusterer {clusterer.name} clusters the reports on each layer, and none are written"
        faults.append(("reports", problem, "Write community.reports=model or =extractive, or community.vectors=members."))
    return faults
