"""Small files written by hand, and the folder of real datasets where there is one."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]

CORPUS = [
    {"id": "p1", "title": "Brask", "text": "Brask lies on the Isken."},
    {"id": "p2", "title": "Isken", "text": "The Isken flows to Dunmere."},
    {"id": "p3", "title": "", "text": "Nothing else is known."},
]
QUESTIONS = [
    {"id": "q1", "question": "Where does Brask's river end?", "type": "2hop", "answers": ["Dunmere"],
     "gold_passages": ["p1", "p2"]},
    {"id": "q2", "question": "Who built it?"},
]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real datasets: the folder named by GRAPHRAG_BENCH_DATA, or shared/data beside the repository."""
    named = os.environ.get("GRAPHRAG_BENCH_DATA")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the real datasets are not here (set GRAPHRAG_BENCH_DATA)")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write rows (one JSON line each), or text or bytes as they are; a name ending in .gz is compressed."""

    def put(name: str, content: list[Any] | str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
        raw = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return put


@pytest.fixture
def good(write: Write, tmp_path: Path) -> Path:
    """A sound folder of the neutral layout."""
    write("corpus.jsonl", CORPUS)
    write("questions.jsonl", QUESTIONS)
    return tmp_path
