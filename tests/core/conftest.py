"""A copy of conf/ that a test may change."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphrag_bench.config import sources

CONF = Path(__file__).parents[2] / "conf"


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Path]]:
    """Put the project's pages into a folder of the test's own; call it to write a page there."""
    root = tmp_path / "conf"
    shutil.copytree(CONF, root)
    monkeypatch.setattr(sources, "roots", lambda: (root,))
    sources.lines.cache_clear()

    def write(name: str, text: str | bytes) -> Path:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        sources.lines.cache_clear()
        return path

    yield write
    sources.lines.cache_clear()
