"""Plans made of a page's text, and operators that are registered for one test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from graphrag_bench.config import sources
from graphrag_bench.pipeline.plan import Planner
from graphrag_bench.pipeline.wiring import Ground
from graphrag_bench.registry import REGISTRY, Registry


@pytest.fixture
def planner(tmp_path: Path) -> Callable[..., Planner]:
    """Return a planner of a page's text; its faults say "page:LINE"."""

    def made(text: str, graph: str | None = "kg") -> Planner:
        path = tmp_path / "page.yaml"
        path.write_text(text, encoding="utf-8")
        sources.lines.cache_clear()
        lines = sources.lines(path)

        def locate(*keys: str) -> str:
            assert keys[0] == "method"
            for depth in range(len(keys), 1, -1):
                if keys[1:depth] in lines:
                    return f"page:{lines[keys[1:depth]]}"
            return "page:1"

        provides = frozenset(REGISTRY.get("builder", graph).provides) if graph else frozenset()
        return Planner(yaml.safe_load(text), Ground(graph, provides), locate)

    return made


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Register an operator until the test is over."""
    REGISTRY.load("operator")

    def add(name: str, call: Any, **facts: Any) -> None:
        fresh = Registry()
        fresh.add("operator", name, call, **facts)
        monkeypatch.setitem(REGISTRY._components["operator"], name, fresh._components["operator"][name])

    return add
