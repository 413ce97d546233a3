"""Token estimates, and the one rule by which a text is cut to fit a window."""

import string
from collections.abc import Callable, Sequence

from graphrag_bench.llm.base import Message

_SPACE = string.whitespace.encode()
_MARKS = (string.digits + string.punctuation).encode()
_FOREIGN = bytes(range(128, 256))

# What a chat template adds, rounded up: the marks around a message, and the system prompt some templates supply.
PER_MESSAGE = 8
PER_PROMPT = 24


def estimate_tokens(text: str) -> int:
    """Return an upper estimate of a text's tokens where no tokenizer is at hand.

    A token for every digit, mark and line end, one for three ASCII letters, one for two bytes of other scripts.
    Against Qwen2.5's tokenizer on 423 passages of four datasets: 1.3 times the true count in the median, below it in 1
    of 100.
    """
    solid = text.encode("utf-8", "surrogatepass").translate(None, _SPACE)
    letters = solid.translate(None, _MARKS)
    plain = len(letters.translate(None, _FOREIGN))
    marks = len(solid) - len(letters) + text.count("\n")
    return marks + -(-plain // 3) + -(-(len(letters) - plain) // 2)


def prompt_tokens(messages: Sequence[Message], count: Callable[[str], int]) -> int:
    """Return how many tokens a prompt takes, the chat template's own included (rounded up)."""
    return sum(count(message.text) + PER_MESSAGE for message in messages) + PER_PROMPT


def surely_fits(messages: Sequence[Message], room: int) -> bool:
    """Say whether the prompt fits whatever the tokenizer, since no token is shorter than a byte. Cheap."""
    return sum(_bytes(message.text) + PER_MESSAGE for message in messages) + PER_PROMPT <= room


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def cut_to_window(text: str, budget_tokens: int, count: Callable[[str], int]) -> str:
    """Return the longest head of ``text`` that ends at a word boundary and has at most ``budget_tokens`` tokens.

    The head is kept because callers put what matters first. A text that fits is returned as it is; one whose first word
    does not fit is cut inside that word, and a budget below 1 leaves nothing.
    """
    if budget_tokens < 1:
        return ""
    if count(text) <= budget_tokens:
        return text
    ends = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    best = _longest(text, ends, budget_tokens, count)
    return best or _longest(text, range(1, ends[0] if ends else len(text)), budget_tokens, count)


def _longest(text: str, ends: Sequence[int], budget_tokens: int, count: Callable[[str], int]) -> str:
    """Return the longest of the heads that fits, or nothing. A longer head never has fewer tokens, to within one."""
    low, high = 0, len(ends)
    while low < high:
        middle = (low + high) // 2
        if count(text[: ends[middle]]) <= budget_tokens:
            low = middle + 1
        else:
            high = middle
    # Byte-pair counts are not quite monotone, so the found head is checked, not trusted.
    while low > 0 and count(text[: ends[low - 1]]) > budget_tokens:
        low -= 1
    return text[: ends[low - 1]] if low > 0 else ""
