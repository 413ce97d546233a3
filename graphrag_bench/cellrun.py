"""Run one cell: offline stages, then questions batch by batch, then scores; everything kept in the cell's folder.

The folder holds, once the run is done:
    config.yaml      the resolved configuration
    run.json         versions, hashes, graph statistics, notes: what a reader needs to believe the numbers
    answers.jsonl    one line a question, appended as it finishes, put into question order at the end
    contexts.jsonl   what each prompt showed
    metrics.json     the scores; per_question.jsonl: the same by question
    ledger.jsonl     every model call; costs.json: tokens and seconds by stage
Answers and metrics hold no time and nothing that depends on how often a run was interrupted: resumed or not, they are the
same bytes.
"""

import json
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from graphrag_bench import __version__
from graphrag_bench.cells import Cell, reaches
from graphrag_bench.chunking.types import ChunkTable
from graphrag_bench.data.types import Dataset, Gold
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.evaluation.records import Record
from graphrag_bench.evaluation.score import Scores, score
from graphrag_bench.generation.answers import Answer, Context
from graphrag_bench.graph.graph import Graph
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.vectors import ChunkVectors, NodeVectors
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.ledger import Ledger
from graphrag_bench.pipeline.answering import answer_batch, retrieved_documents, with_failures
from graphrag_bench.pipeline.execute import convert, query_texts, retrieve
from graphrag_bench.pipeline.given import GivenEntities
from graphrag_bench.pipeline.stages import Stages
from graphrag_bench.pipeline.values import Questions
from graphrag_bench.report.cell import CellResult
from graphrag_bench.session import Session
from graphrag_bench.store.artifacts import digest
from graphrag_bench.store.faults import disk_faults
from graphrag_bench.store.files import write_json, write_lines, write_text


class CellRun:
    """One cell on its way through its stages."""

    def __init__(self, session: Session, cell: Cell) -> None:
        self.session = session
        self.cell = cell
        self.config = cell.config
        self.dataset: Dataset = session.dataset(cell.config)
        self.folder = cell.folder(self.dataset.name)
        self.progress = session.progress
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.notes: list[str] = [*self.dataset.notes]
        self.rows: dict[str, dict[str, Any]] = {}
        self.shown: dict[str, Context] = {}
        self.ledger = Ledger()
        self._empty = 0
        self._by_id = {question.id: question for question in self.dataset.questions}
        self._chat: ChatModel | None = None
        self.stages = Stages(
            cell.config, self.dataset, session.store, lambda: session.embedder(cell.config), self.chat,
            lambda: session.backend(cell.config).identity, self._spent, session.progress,
        )

    def chat(self) -> ChatModel:
        """Return the cell's chat model."""
        if self._chat is None:
            self._chat = self.session.chat(self.config, self.ledger)
        return self._chat

    def _spent(self, stage: str) -> dict[str, Any]:
        totals = self.ledger.by_stage().get(stage)
        return totals.as_dict() if totals else {}

    def fingerprint(self) -> str:
        """Return the hash of all that can change this cell's answers and scores."""
        parts: dict[str, Any] = {"config": self.cell.keyed(), "dataset": self.dataset.sha256, "version": __version__}
        parts["prompts"] = [c.extra["prompts"] for c in self._components() if "prompts" in c.extra]
        parts["components"] = [[c.kind, c.name, c.version] for c in self._components()]
        if self.uses_model():
            parts["model"] = dict(self.session.backend(self.config).identity)
        return digest(parts)

    def _components(self) -> list[Any]:
        builder = self.stages.builder()
        return [*self.cell.plan.components, *([builder, self.stages.extractor()] if builder else [])]

    def uses_model(self) -> bool:
        """Say whether any part of this cell, as far as it goes, asks the chat model."""
        offline = [self.stages.extractor()] if self.stages.builder() else []
        spending = [c for c in (*offline, *self.cell.plan.components) if any(p.annotation is ChatModel for p in c.ports)]
        if not reaches(self.config, "answer"):
            spending = [c for c in spending if c.kind != "generator"]
        if not reaches(self.config, "retrieval"):
            spending = [c for c in spending if c.kind == "extractor"]
        return bool(spending)

    def finished(self) -> CellResult | None:
        """Return the result that already lies in the folder, if it is this cell's."""
        path = self.folder / "run.json"
        if self.config["execution"]["redo"] or self.config["execution"]["retry_failed"] or not path.exists():
            return None
        try:
            record = json.loads(path.read_text("utf-8"))
        except ValueError:
            return None
        if record.get("fingerprint") != self.fingerprint() or record.get("status") != "done":
            return None
        if reaches(self.config, "retrieval") and not (self.folder / "answers.jsonl").exists():
            return None
        return CellResult(**record["result"] | {"notes": tuple(record["result"]["notes"])})

    async def run(self) -> CellResult:
        """Run the cell; return what the table shows of it."""
        self._set_aside_other()
        with disk_faults("make the run's folder", self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self.folder / "config.yaml", _yaml(self.config))
        self.ledger = self.session.ledger(self.config, self.folder / "ledger.jsonl") if self.uses_model() else Ledger()
        lend = await self._prepare()
        asked = self.dataset.questions[: self.config["limit"]]
        scores: Scores | None = None
        try:
            if reaches(self.config, "retrieval"):
                chunks = await self.stages.chunks()
                with (self.folder / "answers.jsonl").open("w", encoding="utf-8") as self._sink:
                    for start in range(0, len(asked), self.config["batch_size"]):
                        batch = asked[start : start + self.config["batch_size"]]
                        await self._batch(Questions(tuple(q.id for q in batch), tuple(q.text for q in batch)), lend, chunks)
                scores = self._finalise([q.id for q in asked], chunks)
        finally:
            self.ledger.close()
        return self._record(scores)

    def _set_aside_other(self) -> None:
        """Keep what another configuration left in this folder, under previous/."""
        path = self.folder / "run.json"
        if not path.exists():
            return
        try:
            other = str(json.loads(path.read_text("utf-8")).get("fingerprint", ""))
        except ValueError:
            other = "unreadable"
        if other != self.fingerprint():
            target = self.folder / "previous" / (other[:12] or "unknown")
            with disk_faults("set an earlier run aside", self.folder):
                target.mkdir(parents=True, exist_ok=True)
                for file in self.folder.iterdir():
                    if file.is_file():
                        file.replace(target / file.name)
            self.progress.say(f"{self.folder} held a run with other settings; it lies now in {target}")

    async def _prepare(self) -> dict[type, Any]:
        """Build or open the offline stages this cell needs, as far as it goes."""
        plan, stages = self.cell.plan, self.stages
        with _clock(self, "index"):
            lend: dict[type, Any] = {}
            await stages.chunks()
            if stages.builder() is not None:
                lend[Graph] = await stages.graph()
            if not reaches(self.config, "index"):
                return lend
            if NodeVectors in plan.loans:
                lend[NodeVectors] = await stages.node_vectors()
            if ChunkVectors in plan.loans:
                lend[ChunkVectors] = await stages.chunk_vectors()
            if LexicalIndex in plan.loans:
                lend[LexicalIndex] = await stages.lexical()
        if Embedder in plan.loans:
            lend[Embedder] = self.session.embedder(self.config)
        if GivenEntities in plan.loans:
            if self.dataset.question_entities is None:
                raise UserError(f"The dataset {self.dataset.name} gives no question entities, and entities.given reads them.",
                                "Set method.question.entities.by=rule or =model.")
            lend[GivenEntities] = GivenEntities(self.dataset.question_entities)
        if self.uses_model():
            lend[ChatModel] = self.chat()
        if ChunkVectors in lend:
            long = self.session.embedder(self.config).long_texts([c.text for c in await stages.chunks()])
            if long:
                self.notes.append(f"{long:,} chunks are longer than the embedder's window; see embedder.long_text.")
        return lend

    async def _batch(self, questions: Questions, lend: Mapping[type, Any], chunks: ChunkTable) -> None:
        plan = self.cell.plan
        if plan.steps:
            self.progress.stage("retrieval", len(self.dataset.questions[: self.config["limit"]])) if not self.rows else None
            with _clock(self, "question"):
                questions = await convert(plan, lend, questions)
                if texts := query_texts(plan, questions):
                    self.session.embedder(self.config).embed(texts, "query")
        with _clock(self, "retrieve"):
            values = await retrieve(plan, lend, questions)
            questions = with_failures(questions, values)
            found = [retrieved_documents(plan, values, row, chunks, self.config["retrieval_depth"]) for row in range(len(questions))]
        self._count_empty(questions, found)
        self.progress.advance("retrieval", len(questions))
        documents = dict(zip(questions.ids, found, strict=True))
        if not reaches(self.config, "answer") or plan.generator is None:
            for row, identity in enumerate(questions.ids):
                failed = questions.failed.get(row)
                self._keep(Answer(identity, "failed" if failed else "ok", None, failed or ""), Context(""), documents)
            return
        if not self.rows:
            self.progress.stage("answers", len(self.dataset.questions[: self.config["limit"]]))
        with _clock(self, "answer"):
            await answer_batch(plan, lend[ChatModel], questions, values, chunks,
                               lambda answer, context: self._keep(answer, context, documents))

    def _count_empty(self, questions: Questions, found: Sequence[tuple[str, ...] | None]) -> None:
        self._empty += sum(documents == () and row not in questions.failed for row, documents in enumerate(found))

    def _keep(self, answer: Answer, context: Context, documents: Mapping[str, tuple[str, ...] | None]) -> None:
        gold = self.dataset.gold.get(answer.question, Gold())
        question = self._by_id[answer.question]
        row: dict[str, Any] = {
            "id": answer.question, "question": question.text, "type": question.type, "status": answer.status,
            "prediction": answer.text, "reason": answer.reason, "answers": list(gold.answers),
            "retrieved": None if documents[answer.question] is None else list(documents[answer.question] or ()),
            "gold_passages": list(gold.passages),
        }
        if answer.raw:
            row["raw"] = answer.raw
        self.rows[answer.question] = row
        self.shown[answer.question] = context
        with disk_faults("write an answer", self.folder):
            self._sink.write(json.dumps(row, ensure_ascii=False) + "\n")
            self._sink.flush()
        self.progress.advance("answers")

    def _finalise(self, order: list[str], chunks: ChunkTable) -> Scores | None:
        """Put the answers into question order and score them."""
        rows = [self.rows[identity] for identity in order]
        write_lines(self.folder / "answers.jsonl", rows)
        self.progress.finish("retrieval")
        answered = reaches(self.config, "answer") and self.cell.plan.generator is not None
        if answered:
            self.progress.finish("answers")
            write_lines(self.folder / "contexts.jsonl", (
                {"id": identity, "chunks": list(self.shown[identity].chunks), "cut": self.shown[identity].cut,
                 "text": self.shown[identity].text} for identity in order))
        if empty := self._empty:
            self.notes.append(f"{empty} of {len(order)} questions retrieved nothing.")
        if cut := sum(self.shown[identity].cut > 0 for identity in order):
            self.notes.append(f"{cut} of {len(order)} contexts were cut to fit the model's window.")
        if answered and not reaches(self.config, "score"):
            return None
        values = self.config["evaluation"]
        metrics = values["metrics"] if answered else [name for name in values["metrics"] if "@" in name or name == "mrr"]
        texts = {document: chunk.text for chunk in chunks for document in chunk.documents} if answered else {}
        scores = score([self._scored(row, texts) for row in rows], metrics, seed=self.config["seed"],
                       resamples=values["bootstrap"], ks=values["ks"], level=values["interval"])
        write_json(self.folder / "metrics.json", scores.to_json())
        write_lines(self.folder / "per_question.jsonl", scores.per_question)
        return scores

    def _scored(self, row: Mapping[str, Any], texts: Mapping[str, str]) -> Record:
        gold = tuple(row["gold_passages"])
        context = self.shown[row["id"]].text if self.cell.plan.sections and texts else None
        return Record(
            row["id"], row["prediction"], tuple(row["answers"]), None if row["retrieved"] is None else tuple(row["retrieved"]),
            gold, row["status"], row["reason"], row["type"], context, tuple(texts.get(p, "") for p in gold) if texts else None,
        )

    def _record(self, scores: Scores | None) -> CellResult:
        totals = {stage: facts.as_dict() for stage, facts in self.ledger.by_stage().items()}
        tokens = {stage: int(facts["prompt_tokens"] + facts["completion_tokens"]) for stage, facts in totals.items()}
        seconds = {f"index.{name}": float(artifact.facts.get("seconds", 0.0)) for name, artifact in self.stages.artifacts.items()}
        for name, artifact in self.stages.artifacts.items():
            spent = artifact.facts.get("spent") or {}
            if spent:
                tokens[name] = int(spent["prompt_tokens"] + spent["completion_tokens"])
        count = len(self.rows)
        answering = totals.get("answer", {}).get("seconds", 0.0)
        asking = totals.get("question", {}).get("seconds", 0.0)
        if count:
            seconds |= {"question": asking, "retrieve": self.seconds.get("retrieve", 0.0), "answer": answering}
        status = "done" if scores is None or scores.answered or not scores.asked else "every question failed"
        result = CellResult(
            method=self.config["method"]["name"], dataset=self.dataset.name, axes=self.cell.axes,
            metrics=scores.to_json()["metrics"] if scores else {}, tokens=tokens,
            seconds={name: round(value, 4) for name, value in seconds.items()}, asked=scores.asked if scores else count,
            answered=scores.answered if scores else count, failed=dict(scores.failed) if scores else {}, status=status,
            notes=tuple(dict.fromkeys(self.notes)),
        )
        write_json(self.folder / "costs.json", {
            "ledger": self.ledger.as_dict(), "wall_seconds": _rounded(self.seconds), "cpu_seconds": _rounded(self.cpu), "questions": count,
            "artifacts": {name: {"built_now": a.built, **a.facts} for name, a in self.stages.artifacts.items()},
        })
        write_json(self.folder / "run.json", self._manifest(result))
        return result

    def _manifest(self, result: CellResult) -> dict[str, Any]:
        graph = self.stages.artifacts.get("graph")
        return {
            "status": result.status, "fingerprint": self.fingerprint(), "graphrag_bench": __version__,
            "method": self.cell.method, "overrides": list(self.cell.overrides), "chain": self.cell.plan.line(),
            "dataset": {"name": self.dataset.name, "sha256": self.dataset.sha256, **asdict(self.dataset.card)},
            "model": dict(self.session.backend(self.config).identity) if self.uses_model() else None,
            "embedder": dict(self.session.embedder(self.config).identity) if {NodeVectors, ChunkVectors} & self.cell.plan.loans else None,
            "prompts": {f"{c.kind} {c.name}": c.extra["prompts"] for c in self._components() if "prompts" in c.extra},
            "components": {f"{c.kind} {c.name}": c.version for c in self._components()},
            "graph": graph.facts if graph else None,
            "artifacts": {name: f"{a.path.parent.name}/{a.key}" for name, a in self.stages.artifacts.items()},
            "python": platform.python_version(), "numpy": np.__version__, "result": asdict(result),
        }


class _clock:  # noqa: N801 - reads as a verb where it is used
    """Adds the wall and CPU seconds of a block to a cell's stage."""

    def __init__(self, run: CellRun, stage: str) -> None:
        self._run, self._stage = run, stage

    def __enter__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        run, stage = self._run, self._stage
        run.seconds[stage] = run.seconds.get(stage, 0.0) + time.perf_counter() - self._wall
        run.cpu[stage] = run.cpu.get(stage, 0.0) + time.process_time() - self._cpu


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in values.items()}


def _yaml(config: Mapping[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True))

