"""Which replies decline to answer."""

import pytest

from graphrag_bench.evaluation.refusal import is_refusal, opens_with_refusal


@pytest.mark.parametrize(
    "reply",
    [
        "I don't know.", "I don’t know", "I do not know the answer to the question.", "Unanswerable", "noanswer",
        "Insufficient information.", "Not mentioned", "Not in the context.", "The information is not available.",
        "The question cannot be answered based on the given context.", "I'm sorry, but I cannot answer this question.",
        "There is not enough information in the provided context to answer the question.",
        "The context does not provide enough information to answer the question.", "The text doesn't say.",
    ],
)
def test_refusals(reply: str) -> None:
    assert is_refusal(reply)
    assert opens_with_refusal(f"{reply.rstrip('.')}. The passages only speak of Paris.")


@pytest.mark.parametrize(
    "reply",
    ["", "No", "Not many", "I know", "Unknown Pleasures", "I don't know the exact day, but it was in 1912", "None",
     "The information desk", "No country for old men"],
)
def test_answers(reply: str) -> None:
    assert not is_refusal(reply)
    assert not opens_with_refusal(reply)


def test_an_explained_refusal_is_not_wholly_one() -> None:
    assert not is_refusal("I don't know. Perhaps Paris.")
    assert opens_with_refusal("I don't know. Perhaps Paris.")
