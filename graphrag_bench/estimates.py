"""What every stage of a cell will take, before it is run: calls, tokens, megabytes, and what the store holds already.

What a component's calls are it says itself (``calls=``, see llm/estimate.py). What a finished stage took stands in its
artifact. How large the graph is, or will be, is reckoned in scaling.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import reaches
from graphrag_bench.config.schema import filled
from graphrag_bench.index.lexical import LexicalIndex
from graphrag_bench.index.tfidf import TfidfIndex
from graphrag_bench.index.vectors import VectorIndex
from graphrag_bench.llm.base import ChatModel
from graphrag_bench.llm.estimate import Calls, tokens_of
from graphrag_bench.pipeline.sizes import Sizes, calls_of, context_of
from graphrag_bench.pipeline.stages import asks
from graphrag_bench.registry import Component
from graphrag_bench.scaling import scale_of
from graphrag_bench.store.artifacts import Artifact, Spec
from graphrag_bench.vectored import Vectored, served_batch

_MB = 1e6


@dataclass
class Estimate:
    """What a stage will take; ``there`` says that the store holds it already, and the numbers are then what it took."""

    stage: str
    asked: Calls = field(default_factory=Calls)
    megabytes: float = 0.0
    there: bool = False
    key: str = ""


class Estimates:
    """The estimates of one cell.

    Attributes:
        rows: one a stage.
        silent: the components that ask the model and say nothing of their calls: one call a unit is reckoned.
    """

    def __init__(self, run: CellRun) -> None:
        self._run = run
        self._stages, self._store = run.stages, run.session.store
        self._stale = run.stages.stale()  # a run asks what has failed there again
        self.rows: list[Estimate] = []
        self.silent: dict[str, None] = {}
        letters = sum(len(document.text) + len(document.title) for document in run.dataset.documents)
        self._text = letters / _MB
        spec = self._stages.chunk_spec()
        self._add("chunks", Calls(), self._text / 3, spec)
        self.scale = scale_of(run)
        if self._stages.builder() is not None:
            self._graph()
        if reaches(run.config, "index"):
            self._indexes()
        if reaches(run.config, "retrieval"):
            self._questions()

    def _add(self, stage: str, asked: Calls, megabytes: float, spec: Spec) -> None:
        found = None if stage in self._stale else self._store.find(spec)
        self.rows.append(Estimate(stage, _spent(found) if found else asked, megabytes, found is not None, spec.key))

    def _asked(self, component: Component | None, group: str, units: int) -> Calls:
        if component is None or not asks(component, self._run.config[group]):
            return Calls()
        return self._calls(component, filled(self._run.config[group], component.settings), units)

    def _calls(self, component: Component, settings: Mapping[str, Any], units: int) -> Calls:
        self.silent |= {} if "calls" in component.extra else {f"{component.kind} {component.name}": None}
        return calls_of(component, settings, self.scale, units)

    def _graph(self) -> None:
        stages, scale = self._stages, self.scale
        if stages.extracts():
            asked = self._asked(stages.extractor(), "graph", scale.chunks)
            self._add("extraction", asked, self._text / 3, stages.extraction_spec())
        asked = self._asked(stages.builder(), "graph", scale.chunks)
        letters = 80 + 3 * scale.node_tokens + 3 * scale.fact_tokens * scale.relationships // max(scale.nodes, 1)
        self._add("graph", asked, scale.nodes * letters / _MB, stages.graph_spec())
        if stages.clusterer() is not None:
            asked = self._asked(stages.clusterer(), "community", scale.communities)
            self._add("communities", asked, 8 * scale.memberships / _MB, stages.hierarchy_spec())
        if stages.reporter() is not None:
            asked = self._asked(stages.reporter(), "community", scale.communities)
            self._add("reports", asked, scale.communities * scale.report_tokens * 2 / _MB, stages.reports_spec())

    def _indexes(self) -> None:
        run, loans = self._run, self._run.cell.plan.loans
        vectored = Vectored(run, self.scale)
        self.rows += [Estimate(row.name, row.asked, row.megabytes, row.there, row.key) for row in vectored.wanted()]
        if LexicalIndex in loans:
            self._add("lexical index", Calls(), self._text, run.indexes.lexical_spec())
        if TfidfIndex in loans:
            there = vectored.tfidf()
            megabytes = self.scale.nodes * self.scale.node_tokens * 8 / _MB
            self.rows.append(Estimate("TF-IDF index", Calls(), megabytes, there, f"tfidf {vectored.text_key}"))

    def _questions(self) -> None:
        plan, config, scale = self._run.cell.plan, self._run.config, self.scale
        asking = [(c, settings) for c, settings in plan.converters if _borrows_model(c)]
        if asking:
            asked = sum((self._calls(c, settings, scale.questions) for c, settings in asking), Calls())
            self.rows.append(Estimate("question", asked))
        if texts := self._queries():
            self.rows.append(Estimate("question vectors", texts))
        sizes = Sizes(plan, scale)
        self.silent |= {f"operator {name}": None for name in sizes.silent}
        if any(_borrows_model(step.component) for step in plan.operators):
            self.rows.append(Estimate("retrieve", sizes.asked))
        if not reaches(config, "answer") or plan.generator is None:
            return
        component, settings = plan.generator
        whole = bool(component.extra.get("whole"))
        room = scale.window - int(settings.get("max_tokens", 0)) - component.extra["overhead"](settings, tokens_of)
        items, tokens = context_of(plan.sections, sizes, scale, None if whole else room)
        guessed = any(source.partition(".")[0] in sizes.guessed for s in plan.sections for source in s.sources)
        self.scale = replace(scale, items=items, context_tokens=tokens, guessed=guessed)
        self.rows.append(Estimate("answer", self._calls(component, settings, scale.questions)))

    def _queries(self) -> Calls | None:
        """Return the calls that embed what is looked up, where the embedder is asked over the network."""
        batch = served_batch(self._run)
        texts = tokens = 0
        for step in self._run.cell.plan.operators if batch else ():
            kinds = [port.annotation for port in step.component.ports if isinstance(port.annotation, type)]
            if any(issubclass(kind, VectorIndex) for kind in kinds):
                mentions = self.scale.mentions if step.settings.get("by") == "entities" else 1
                texts += self.scale.questions * mentions
                tokens += self.scale.question_tokens
        return Calls(-(-texts // batch), tokens, 0, "at most") if texts else None


def _borrows_model(component: Component) -> bool:
    return any(port.annotation is ChatModel for port in component.ports)


def _spent(artifact: Artifact) -> Calls:
    spent = artifact.facts.get("spent") or {}
    calls, prompt, reply = (int(spent.get(name, 0)) for name in ("calls", "prompt_tokens", "completion_tokens"))
    return Calls(calls, prompt, reply)
