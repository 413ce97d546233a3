"""When a stage has failed too often for its result to be worth anything."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.errors import UserError


def failed_calls(facts: Mapping[str, Any]) -> dict[str, int]:
    """Return how many calls of a stage have failed for good, by kind: those that cost a unit, and those that left it less.

    A failed gleaning round costs no chunk, and is seen only among the calls that were booked.
    """
    units, calls = facts.get("failed") or {}, (facts.get("spent") or {}).get("failed") or {}
    return {kind: max(units.get(kind, 0), calls.get(kind, 0)) for kind in sorted({*units, *calls})}


def hold_floor(what: str, facts: Mapping[str, Any], units: int, unit: str, limits: Mapping[str, Any]) -> None:
    """Raise UserError where a stage of ``units`` calls stays below the floors of the group ``execution``."""
    if not units:
        return
    said = ""
    if facts["parse_rate"] < limits["min_parse_rate"]:
        floor = f"execution.min_parse_rate={limits['min_parse_rate']}"
        said = f"only {facts['parse_rate']:.0%} of the {unit}s gave a readable reply ({floor})"
    elif "entities" in facts and (each := facts["entities"] / units) < limits["min_entities"]:
        said = f"only {each:.2f} entities a chunk were found (execution.min_entities={limits['min_entities']})"
    if said:
        kinds = ", ".join(f"{count} {kind}" for kind, count in facts["failed"].items()) or "no call failed"
        raise UserError(
            f"{what} stopped: {said}; failures: {kinds}.",
            "Mend the model or its server and run again with execution.retry_failed=true; finished replies are kept.",
        )
