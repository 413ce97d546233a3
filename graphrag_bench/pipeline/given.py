"""What a dataset gives beside its questions."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class GivenEntities:
    """The entities of each question, by question id, as the dataset has them."""

    by_question: Mapping[str, tuple[str, ...]]
