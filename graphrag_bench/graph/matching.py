"""Which names are read as one entity: those a soft matching joins, by the cosine of their embeddings and by their letters."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphrag_bench.embedding.base import Embedder
from graphrag_bench.errors import UserError
from graphrag_bench.graph.synonyms import synonyms

_DIGITS = re.compile(r"\d+")
_TOP = 100  # nearest names looked at, as in the knowledge graph


def soft_matches(
    names: Mapping[str, str], mentions: Mapping[str, int], embedder: Embedder, cosine: float, spelling: float
) -> dict[str, str]:
    """Return the keys that are read as another, and as which.

    Two names are alike when the cosine of their embeddings and the likeness of their spelling both reach their thresholds
    and they hold the same numbers ("World War 1" is not "World War 2"). A name is read as the most frequent one it is like
    (of equals, the first met); a name others are read as is read as itself, so that nothing is chained.

    Args:
        names: key -> first spelling, in the order met.
        mentions: key -> how many mentions.
        embedder: embeds the names.
        cosine: from which two names are near.
        spelling: from which they are spelled alike (see `alike`), 0 to 1.

    Raises:
        UserError: A threshold is out of its range.
    """
    for setting, value in (("match_cosine", cosine), ("match_spelling", spelling)):
        if not 0 <= value <= 1:
            raise UserError(f"graph.{setting} is {value}.", "Write a number from 0 to 1.")
    keys, spelled = list(names), list(names.values())
    left, right, _ = synonyms(spelled, embedder, cosine, _TOP)
    pairs = [
        (a, b)
        for a, b in zip(left.tolist(), right.tolist(), strict=True)
        if same_numbers(spelled[a], spelled[b]) and alike(keys[a], keys[b]) >= spelling
    ]
    read_as = most_frequent(np.array([mentions[key] for key in keys], np.int64), pairs)
    return {keys[at]: keys[other] for at, other in enumerate(read_as.tolist()) if other != at}


def same_numbers(one: str, other: str) -> bool:
    """Say whether two names hold the same numbers."""
    return Counter(_DIGITS.findall(one)) == Counter(_DIGITS.findall(other))


def alike(one: str, other: str) -> float:
    """Return how alike two phrase keys are spelled, 0 to 1: 1 for a name and its initials or its words in another order.

    Else the larger of two shares: Dice's coefficient of their letter trigrams, and of the shorter's words those that stand
    in the longer ("scrooge" in "ebenezer scrooge"), the latter times 0.9, since a part may also be another's.
    """
    first, second = one.split(), other.split()
    if sorted(first) == sorted(second) or _initials(first, second) or _initials(second, first):
        return 1.0
    a, b = Counter(_trigrams(one)), Counter(_trigrams(other))
    shared = (a & b).total()
    dice = 2 * shared / max(a.total() + b.total(), 1)
    short, long = sorted((first, second), key=lambda words: (len(words), words))
    held = (Counter(short) & Counter(long)).total() / max(len(short), 1)
    return max(dice, 0.9 * held)


def most_frequent(mentions: NDArray[np.int64], pairs: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return what each name is read as: itself, or a more frequent one it is paired with; nothing is chained.

    Args:
        mentions: (names,) how often each is met; of equals the first counts as the more frequent.
        pairs: names that may be one.
    """
    near: dict[int, list[int]] = {}
    for a, b in pairs:
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    read_as = np.arange(len(mentions))
    settled = np.zeros(len(mentions), bool)
    for number in np.lexsort((np.arange(len(mentions)), -mentions)).tolist():
        if not settled[number]:
            settled[number] = True
            for other in near.get(number, ()):
                if not settled[other]:
                    settled[other] = True
                    read_as[other] = number
    return read_as


def _initials(short: Sequence[str], long: Sequence[str]) -> bool:
    return len(short) == 1 and len(long) > 1 and short[0] == "".join(word[0] for word in long)


def _trigrams(key: str) -> list[str]:
    padded = f"  {key} "
    return [padded[at : at + 3] for at in range(len(padded) - 2)]
