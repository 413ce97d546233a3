"""The answers of one cell: appended as they come, put into question order at the end, scored."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphrag_bench.data.types import Dataset, Gold
from graphrag_bench.evaluation.catalogue import expand, metric
from graphrag_bench.evaluation.records import Record
from graphrag_bench.evaluation.score import Scores, score
from graphrag_bench.generation.answers import Answer, Context
from graphrag_bench.store.faults import disk_faults
from graphrag_bench.store.files import write_json, write_lines


class AnswerBook:
    """Collects answers and what each prompt showed, in a folder.

    Args:
        folder: where ``answers.jsonl``, ``contexts.jsonl``, ``metrics.json`` and ``per_question.jsonl`` go.
        dataset: the questions and their gold, which enters the lines only here, after the answer is made.
        texts: the texts of documents, for text recall; empty when nothing is answered.
    """

    def __init__(self, folder: Path, dataset: Dataset, texts: Mapping[str, str]) -> None:
        self.folder = folder
        self._dataset = dataset
        self._texts = texts
        self._questions = {question.id: question for question in dataset.questions}
        self._rows: dict[str, dict[str, Any]] = {}
        self._shown: dict[str, Context] = {}
        self._said: dict[str, str] = {}  # every text that was shown, once
        self._elements: dict[str, Mapping[str, Sequence[Mapping[str, Any]]]] = {}
        with disk_faults("write the answers", folder):
            self._file = (folder / "answers.jsonl").open("w", encoding="utf-8", newline="\n")

    def __len__(self) -> int:
        return len(self._rows)

    def keep(
        self,
        answer: Answer,
        context: Context | None,
        retrieved: Sequence[str] | None,
        elements: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        """Append one answer.

        Args:
            answer: the answer.
            context: what its prompt showed; None where nothing was asked.
            retrieved: the documents that what was retrieved stands for; None where it stands for none.
            elements: what was retrieved, by section.
        """
        if elements:
            self._elements[answer.question] = elements
        question = self._questions[answer.question]
        gold = self._dataset.gold.get(answer.question, Gold())
        row: dict[str, Any] = {
            "id": answer.question,
            "question": question.text,
            "type": question.type,
            "status": answer.status,
            "prediction": answer.text,
            "reason": answer.reason,
            "answers": list(gold.answers),
            "retrieved": None if retrieved is None else list(retrieved),
            "gold_passages": list(gold.passages),
        }
        if answer.raw:
            row["raw"] = answer.raw
        self._rows[answer.question] = row
        if context is not None:
            # many questions may be shown the same: every report of a level, say
            text = self._said.setdefault(context.text, context.text)
            self._shown[answer.question] = replace(context, text=text, items=())
        with disk_faults("write an answer", self.folder):
            self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file; what was appended stays."""
        self._file.close()

    def settle(self, order: Sequence[str]) -> list[str]:
        """Put the files into question order; return notes for the reader."""
        self.close()
        write_lines(self.folder / "answers.jsonl", (self._rows[identity] for identity in order))
        if self._elements:
            lines = ({"id": identity, **self._elements[identity]} for identity in order if identity in self._elements)
            write_lines(self.folder / "elements.jsonl", lines)
        if not self._shown:
            return []
        write_lines(
            self.folder / "contexts.jsonl",
            (
                {"id": identity, "chunks": list(shown.chunks), "cut": shown.cut, "text": shown.text}
                for identity in order
                if (shown := self._shown.get(identity)) is not None
            ),
        )
        cut = sum(shown.cut > 0 for shown in self._shown.values())
        notes = [f"{cut} of {len(order)} contexts were cut to fit their room."] if cut else []
        remarked = [self._rows[i] for i in order if self._rows[i]["status"] == "ok" and self._rows[i]["reason"]]
        if remarked:  # an answer that was given, but not as the method means to
            first = f"{remarked[0]['id']}: {remarked[0]['reason']}"
            notes.append(f"{len(remarked)} of {len(order)} answers have a remark in answers.jsonl, such as {first}.")
        answered = [identity for identity, row in self._rows.items() if row["status"] in ("ok", "refused")]
        bare = sum(self._shown[i].text == "" for i in answered if i in self._elements and i in self._shown)
        return [*notes, *([f"{bare} of {len(order)} questions were answered over an empty context."] if bare else [])]

    def score(
        self, order: Sequence[str], settings: Mapping[str, Any], seed: int, *, depth: int, answered: bool
    ) -> Scores:
        """Score the answers, or the retrieval alone when nothing was answered; write the scores.

        Args:
            order: the questions' ids, in order.
            settings: the ``evaluation`` group.
            seed: of the bootstrap.
            depth: how deep rankings were kept; metrics that look deeper are left out.
            answered: whether there are answers to score.
        """
        names = expand(settings["metrics"], settings["ks"])
        if not answered:
            names = [name for name in names if metric(name).needs == ("passages",)]
        names = [name for name in names if depth_of(name) <= depth]  # a ranking cut at 10 has no recall@20
        records = [self._record(self._rows[identity]) for identity in order]
        scores = score(
            records,
            names,
            seed=seed,
            resamples=settings["bootstrap"],
            ks=settings["ks"],
            level=settings["interval"],
        )
        write_json(self.folder / "metrics.json", scores.to_json())
        write_lines(self.folder / "per_question.jsonl", scores.per_question)
        return scores

    def tally(self, order: Sequence[str]) -> Scores:
        """Count how many questions were answered, and failures by kind, without a metric; write nothing."""
        return score([self._record(self._rows[identity]) for identity in order], [])

    def _record(self, row: Mapping[str, Any]) -> Record:
        gold = tuple(row["gold_passages"])
        shown = self._shown.get(row["id"])
        return Record(
            id=row["id"],
            prediction=row["prediction"],
            answers=tuple(row["answers"]),
            retrieved=None if row["retrieved"] is None else tuple(row["retrieved"]),
            gold_passages=gold,
            status=row["status"],
            reason=row["reason"],
            type=row["type"],
            context_text=shown.text if shown is not None and row["retrieved"] is not None else None,
            gold_texts=tuple(self._texts.get(passage, "") for passage in gold) if shown is not None else None,
        )


def depth_of(name: str) -> int:
    """Return how many passages a metric looks at: 5 for recall@5, 0 where its name does not say."""
    _, _, k = name.partition("@")
    return int(k) if k.isdigit() else 0
