"""A stranger's package: one operator and one page, installed, listed and run, with nothing of ours changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "graphrag-bench-stranger"
version = "0.1"

[project.entry-points."graphrag_bench.operator"]
stranger = "stranger.operators"

[project.entry-points."graphrag_bench.conf"]
stranger = "stranger"

[tool.hatch.build.targets.wheel]
packages = ["stranger"]
"""
OPERATOR = '''\
"""The first chunks of the corpus, whatever is asked."""

from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Chunks
from graphrag_bench.registry import operator


@operator("chunk.first")
def first(questions: Questions, *, count: int = 3) -> Chunks:
    """Take the corpus's first chunks for every question."""
    return Chunks.of_rows([(range(count), [1.0] * count)] * len(questions))
'''
PAGE = """\
# - | - | First | - | -
name: First come
top_k: 2
retrieve:
  found: {operator: chunk.first, count: 2}
context: {chunks: {from: found, top_k: "${method.top_k}"}}
answer: {generator: direct}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("stranger")
    for path, text in {
        "pyproject.toml": PYPROJECT,
        "stranger/__init__.py": "",
        "stranger/operators.py": OPERATOR,
        "stranger/conf/method/first_come.yaml": PAGE,
    }.items():
        (root / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "source" / path).write_text(text, encoding="utf-8")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--no-cache-dir",
            "--no-warn-script-location",
            "--disable-pip-version-check",
            "--target",
            root / "site",
            root / "source",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return root / "site"


def command(site, folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(site), "GRAPHRAG_BENCH_STORE": str(folder / "store")}
    done = subprocess.run(
        [sys.executable, "-m", "graphrag_bench", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed_beside_ours(site, tmp_path):
    (entry,) = [
        e for e in json.loads(command(site, tmp_path, "list", "operator", "--json")) if e["name"] == "chunk.first"
    ]
    assert entry["where"] == "stranger.operators:first"
    assert entry["summary"] == "Take the corpus's first chunks for every question."
    assert entry["settings"] == {"count": {"type": "int", "default": 3}}


def test_its_page_runs(site, tmp_path):
    out = command(
        site,
        tmp_path,
        "run",
        "method=first_come",
        "dataset=sample",
        "embedder=hashing",
        "until=retrieval",
        f"output={tmp_path / 'out'}",
        "logging.display=none",
        "limit=10",
        "evaluation.bootstrap=50",
    )
    assert "First come" in out
    folder = tmp_path / "out" / "first_come" / "sample"
    metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert metrics["asked"] == 10
    assert metrics["failed"] == {}
    assert 0 <= metrics["metrics"]["recall@2"]["value"] <= 1
    rows = [json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]
    assert len({tuple(row["retrieved"]) for row in rows}) == 1  # the same chunks for all
    assert len(rows[0]["retrieved"]) == 2
    assert json.loads((folder / "run.json").read_text("utf-8"))["chain"] == "chunk.first > context(chunks) > direct"
