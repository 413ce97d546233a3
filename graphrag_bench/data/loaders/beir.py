"""BEIR folders: corpus, queries and relevance judgements, for retrieval only (there are no answers)."""

from collections.abc import Iterator
from pathlib import Path

from graphrag_bench.data.build import GoldRow, make_dataset
from graphrag_bench.data.neutral import existing_folder, need_file
from graphrag_bench.data.reading import FaultList, Located, read_lines, read_records
from graphrag_bench.data.types import Dataset, Document, Gold, Question
from graphrag_bench.errors import UserError
from graphrag_bench.registry import register


@register("dataset", "beir")
def beir(*, path: str, split: str = "test", name: str | None = None) -> Dataset:
    """Load ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/<split>.tsv`` of a BEIR dataset.

    The questions are those the split judges; a passage judged above 0 is gold.

    Args:
        path: The folder.
        split: The file of judgements.
        name: The dataset's name; the folder's name where it is not given.

    Raises:
        UserError: A file is missing or faulty; it names file and line.
    """
    folder = existing_folder(path)
    corpus = need_file(folder, "corpus.jsonl", "corpus")
    queries = need_file(folder, "queries.jsonl", "queries")
    judged = _qrels(need_file(folder, f"qrels/{split}.tsv", f"judgements of the split {split}"))
    documents = read_records(
        corpus, lambda row: Document(row.text("_id"), row.text("title", default=""), row.text("text"))
    )
    found = read_records(queries, lambda row: Question(row.text("_id"), row.text("text")))
    wanted = {row.value[0] for row in judged}
    questions = [row for row in found if row.value.id in wanted]
    notes = [f"{left:,} of {len(found):,} queries are not judged in the split {split} and were left out."
             ] if (left := len(found) - len(questions)) else []
    return make_dataset(name or folder.resolve().name, documents, questions, judged, notes=notes)


def _qrels(path: Path) -> list[GoldRow]:
    faults = FaultList(str(path))
    rows = list(_judgements(path, faults))
    faults.settle()
    if not rows:
        raise UserError(f"{path}:1: the file is empty.", "It should hold query-id, corpus-id and score, tab-separated.")
    return rows


def _judgements(path: Path, faults: FaultList) -> Iterator[GoldRow]:
    for number, line in read_lines(path, faults):
        fields = line.rstrip("\r\n").split("\t")
        if not line.strip() or (number == 1 and fields[0] in ("query-id", "query_id", "qid")):
            continue
        place = f"{path}:{number}"
        if len(fields) != 3:
            faults.add(f"{place}: {len(fields)} fields where three are wanted.",
                       "Write query-id, corpus-id and score, separated by tabs.")
            continue
        try:
            relevant = float(fields[2]) > 0
        except ValueError:
            faults.add(f"{place}: the score {fields[2]!r} is not a number.", "Write a number.")
            continue
        yield Located((fields[0], Gold(passages=(fields[1],) if relevant else ())), place)
