"""Step: the next open step of a plan as the text that is looked for."""

from dataclasses import replace

from graphrag_bench.pipeline.mentions import mentions
from graphrag_bench.pipeline.texts import Questions, Texts
from graphrag_bench.registry import operator
from operators._steps import filled


@operator("question.step")
def step(questions: Questions, steps: Texts, notes: Texts) -> Questions:
    """Read each question as its first step without a note, with the answers it names in their places.

    The entities of a step are found by rule (`mentions`); a step that is the question itself keeps the question's, where
    the method asks for them. A question without an open step is read as its last step.

    Args:
        questions: the batch, in its own words.
        steps: the steps of each.
        notes: what was found in the steps done so far, in their order.
    """
    texts = list(questions.texts)
    entities: list[tuple[str, ...]] = [()] * len(questions)
    for row, (own, planned, found) in enumerate(zip(questions.texts, steps, notes, strict=True)):
        if planned:
            texts[row] = filled(planned[min(len(found), len(planned) - 1)].text, found)
        kept = questions.entities[row] if questions.entities is not None and texts[row] == own else None
        entities[row] = mentions(texts[row]) if kept is None else kept
    return replace(questions, texts=tuple(texts), entities=tuple(entities), low=None, high=None)
