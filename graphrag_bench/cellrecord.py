"""What a finished cell records of itself: its fingerprint, its costs, its manifest, its row in the table."""

import hashlib
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_bench import __version__
from graphrag_bench.evaluation.score import Scores
from graphrag_bench.pipeline.floors import failed_calls
from graphrag_bench.registry import REGISTRY
from graphrag_bench.report.cell import CellResult
from graphrag_bench.store.artifacts import digest

if TYPE_CHECKING:
    from graphrag_bench.cellrun import CellRun


def fingerprint(run: "CellRun") -> str:
    """Return the hash of all that can change this cell's answers and scores."""
    parts: dict[str, Any] = {"config": run.cell.keyed(), "dataset": run.dataset.sha256, "version": __version__}
    parts["prompts"] = [c.extra["prompts"] for c in run.components if "prompts" in c.extra]
    parts["components"] = [[c.kind, c.name, c.version] for c in run.components]
    if found := engines(run):
        parts["engines"] = found
    parts["metrics"] = [[c.name, c.version] for c in REGISTRY.all("metric")]
    if run.uses_model():
        parts["model"] = dict(run.session.backend(run.config).identity)
    if run.embeds():
        parts["embedder"] = dict(run.session.embedder(run.config).identity)
    return digest(parts)


def engines(run: "CellRun") -> dict[str, str]:
    """Return which library serves a component that can be served by several, by component."""
    return {f"{c.kind} {c.name}": str(c.extra["engine"]()) for c in run.components if "engine" in c.extra}


def result_of(run: "CellRun", scores: Scores | None) -> CellResult:
    """Return what the table shows: scores, and tokens and seconds by stage.

    Tokens and seconds of model calls are those of the original calls also where a reply came from the cache, so a resumed
    run and an unbroken one cost the same.
    """
    totals = {stage: facts.as_dict() for stage, facts in run.ledger.by_stage().items()}
    tokens = {stage: int(facts["prompt_tokens"] + facts["completion_tokens"]) for stage, facts in totals.items()}
    seconds: dict[str, float] = {}
    for name, artifact in run.stages.artifacts.items():
        # a graph embeds its nodes' names while it is built, which is booked with the vectors; and communities may have
        # reports written while they are looked for, which is booked with the reports
        elsewhere = sum(float(artifact.facts.get(f"{what}_seconds", 0.0)) for what in ("embedding", "reports"))
        own = float(artifact.facts.get("seconds", 0.0)) - elsewhere
        seconds[f"index.{name}"] = max(own, 0.0)
        if spent := artifact.facts.get("spent"):
            tokens[name] = int(spent["prompt_tokens"] + spent["completion_tokens"])
            seconds[f"index.{name}"] = max(seconds[f"index.{name}"], float(spent["seconds"]))
    if run.asked and "retrieve" in run.seconds:
        seconds["question"] = float(totals.get("question", {}).get("seconds", 0.0))
        # operators that ask: what the calls took when they were made, also where a resumed run reads them from the cache
        seconds["retrieve"] = max(run.seconds["retrieve"], float(totals.get("retrieve", {}).get("seconds", 0.0)))
        seconds["answer"] = float(totals.get("answer", {}).get("seconds", 0.0))
    return CellResult(
        method=run.config["method"]["name"],
        dataset=run.dataset.name,
        axes=run.cell.axes,
        metrics=(run.quality.cell_metrics() if run.quality else {}) | (scores.to_json()["metrics"] if scores else {}),
        tokens=tokens,
        seconds={name: round(value, 4) for name, value in seconds.items()},
        asked=scores.asked if scores else len(run.asked),
        answered=scores.answered if scores else len(run.asked),
        failed=dict(scores.failed) if scores else {},
        status="every question failed" if scores and scores.asked and not scores.answered else "done",
        notes=tuple(dict.fromkeys([*run.notes, *_remarks(run, scores)])),
    )


def _remarks(run: "CellRun", scores: Scores | None) -> Iterator[str]:
    """Yield what the reader of the table should know of failures and times."""
    again = "execution.retry_failed=true asks them again."
    divided = run.stages.artifacts.get("communities")
    if divided is not None and divided.facts.get("communities") == 0:
        why = f" (stopped by {divided.facts['stopped']})" if "stopped" in divided.facts else ""
        yield f"No communities were found{why}: nothing was retrieved of them."
    extracting, reporting = "Extraction", "Writing reports"
    for stage, what in (("extraction", extracting), ("graph", "Building the graph"), ("reports", reporting)):
        made = run.stages.artifacts.get(stage)
        if made is None:
            continue
        facts, failed = made.facts, made.facts.get("failed") or {}
        if failed and what == extracting:
            yield f"Extraction failed in {sum(failed.values())} of {facts['chunks']} chunks ({_kinds(failed)}); {again}"
        elif failed:
            yield f"{what}: {sum(failed.values())} calls failed ({_kinds(failed)}); {again}"
        further = {kind: count - failed.get(kind, 0) for kind, count in failed_calls(facts).items()}
        if further := {kind: count for kind, count in further.items() if count}:
            yield f"{what}: {sum(further.values())} calls that would have added to it failed ({_kinds(further)}); {again}"
        if (cut := facts.get("cut")) and what == extracting:
            yield f"{cut} of {facts['chunks']} chunks were cut to fit the model's window for extraction."
        elif cut and what == reporting:
            yield f"{cut} of {facts['reports']} communities did not fit the model's window whole and were cut."
    for name, engine in engines(run).items():
        yield f"{name} was served by {engine}."
    if scores is not None and scores.failed:
        yield "Failed questions count as wrong; execution.retry_failed=true asks them again."
    if scores is not None and run.cell.plan.steps and (size := min(run.config["batch_size"], len(run.asked))) > 1:
        yield f"Retrieval's seconds are amortised over batches of {size}; batch_size=1 gives the latency of one question."


def _kinds(failed: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in failed.items())


def checksum(path: Path) -> str:
    """Return a file's SHA-256, or an empty text where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def costs(run: "CellRun") -> dict[str, Any]:
    """Return tokens and seconds by stage; times are of this process, and so in a file of their own."""
    return {
        "ledger": run.ledger.as_dict(),
        "wall_seconds": _rounded(run.seconds),
        "cpu_seconds": _rounded(run.cpu),
        "questions": len(run.asked),
        "artifacts": {name: {"built_now": a.built, **a.facts} for name, a in run.stages.artifacts.items()},
    }


def question_costs(run: "CellRun") -> Iterator[dict[str, Any]]:
    """Yield each question's tokens and model seconds by stage.

    Retrieval's seconds are its share of the whole, or those of its calls where they took longer, as in a resumed run that
    reads them from the cache.
    """
    share = run.seconds.get("retrieve", 0.0) / max(len(run.asked), 1)
    for question in run.asked:
        stages = run.by_subject.get(question.id, {})
        retrieving = max(share, stages.get("retrieve", (0, 0.0))[1])
        yield {
            "id": question.id,
            "tokens": {stage: tokens for stage, (tokens, _) in sorted(stages.items())},
            "seconds": _rounded(
                {stage: seconds for stage, (_, seconds) in sorted(stages.items())} | {"retrieve": retrieving}
            ),
        }


def manifest(run: "CellRun", result: CellResult) -> dict[str, Any]:
    """Return what a reader needs to believe the numbers, and to make them again."""
    graph = run.stages.artifacts.get("graph")
    names = (
        "answers.jsonl", "contexts.jsonl", "elements.jsonl", "metrics.json", "per_question.jsonl", "communities.json",
    )
    return {
        "status": result.status,
        "files": {name: checksum(run.folder / name) for name in names if (run.folder / name).exists()},
        "fingerprint": fingerprint(run),
        "graphrag_bench": __version__,
        "method": run.cell.method,
        "overrides": list(run.cell.overrides),
        "chain": run.cell.plan.line(),
        "dataset": {"sha256": run.dataset.sha256, "card": asdict(run.dataset.card)},
        "model": dict(run.session.backend(run.config).identity) if run.uses_model() else None,
        "embedder": dict(run.session.embedder(run.config).identity) if run.embeds() else None,
        "prompts": {f"{c.kind} {c.name}": c.extra["prompts"] for c in run.components if "prompts" in c.extra},
        "components": {f"{c.kind} {c.name}": c.version for c in run.components},
        "engines": engines(run),
        "graph": graph.facts if graph else None,
        "artifacts": {name: f"{a.path.parent.name}/{a.key}" for name, a in run.stages.artifacts.items()},
        "python": platform.python_version(),
        "numpy": np.__version__,
        "result": asdict(result),
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}
