"""Start: nothing noted yet, as a loop that takes notes begins."""

from graphrag_bench.pipeline.texts import Questions, Texts
from graphrag_bench.registry import operator


@operator("question.start", yields=lambda settings, scale: 0)
def start(questions: Questions) -> Texts:
    """Return no text for any question.

    Args:
        questions: the batch.
    """
    return Texts.empty(len(questions))
