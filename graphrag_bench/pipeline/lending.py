"""What a component that helps to make the graph is lent, by the types of its ports."""

from collections.abc import Mapping
from typing import Any

from graphrag_bench.errors import UserError
from graphrag_bench.registry import Component


def lent(component: Component, lend: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the arguments of a component by name; raise UserError where it takes what nobody lends here."""
    missing = [port for port in component.ports if port.annotation not in lend]
    if missing:
        raise UserError(
            f"{component.kind} {component.name} ({component.where}) takes {missing[0].name} of a type nobody lends here.",
            f"It can take {', '.join(getattr(t, '__name__', str(t)) for t in lend)}.",
        )
    return {port.name: lend[port.annotation] for port in component.ports}
