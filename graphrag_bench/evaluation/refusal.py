"""Replies that decline to answer, and gold answers that say there is none."""

import re

from graphrag_bench.evaluation.normalise import normalise

# Written over normalised text: no case, punctuation or articles. A reply is a refusal only if the *whole* of it fits:
# "I don't know the exact day, but it was in 1912" is an answer.
_SUBJECT = r"(?:question|query|it|this|answer|this question|question asked|information)"
_SOURCE = r"(?:\w+ ){0,3}(?:context|information|text|texts|passage|passages|document|documents|data|sources|question)"
_FORMS = (
    # I don't know; I do not know the answer; sorry, I don't know
    r"i (?:dont|do not) know(?: answer| answer to (?:this )?question)?",
    # I cannot answer; unable to determine; I am not able to answer this question
    rf"(?:i )?(?:cannot|cant|can not|could not|am unable to|am not able to|unable to) "
    rf"(?:answer|determine)(?: {_SUBJECT})?",
    # cannot be answered; the question cannot be determined
    rf"(?:{_SUBJECT} )?(?:cannot|can not) be (?:answered|determined)",
    # unanswerable; no answer; the question is not answerable
    rf"(?:{_SUBJECT} is )?(?:unanswerable|not answerable|no ?answer)",
    # insufficient information; there is not enough information; no information is given
    r"(?:there is )?(?:insufficient|not enough|not sufficient|no) (?:information|context|data|evidence)"
    r"(?: (?:is )?(?:given|provided|available|found))?",
    # the context has not enough information; the passages do not mention it; the text does not contain the answer
    rf"{_SOURCE} (?:has|have|contains|contain|provides|provide) (?:insufficient|not enough|no) information",
    rf"{_SOURCE} (?:does not|doesnt|do not|dont) "
    rf"(?:contain|mention|say|state|provide|give)(?: {_SUBJECT}| (?:(?:enough|sufficient|any) )?information)?",
    # not in the context; not mentioned; the answer is not given in the passages
    rf"(?:{_SUBJECT} is )?not (?:mentioned|stated|found|provided|given|specified|available)",
    rf"(?:{_SUBJECT} is )?not in {_SOURCE}",
)
_TAIL = rf"(?: (?:to (?:answer|determine)(?: {_SUBJECT})?|(?:in|from|based on|given|with|by) {_SOURCE}))*"
_REFUSAL = re.compile(rf"(?:(?:im |i am )?sorry (?:but )?)?(?:{'|'.join(_FORMS)}){_TAIL}")
_SENTENCE_END = re.compile(r"[.!?;\n。！？]+")


def is_refusal(text: str) -> bool:
    """Say whether the whole of ``text`` is one of the listed ways to decline ("Insufficient information.")."""
    return _REFUSAL.fullmatch(normalise(text)) is not None


def opens_with_refusal(text: str) -> bool:
    """Say whether the first sentence of ``text`` declines, whatever explanation follows."""
    return is_refusal(text) or is_refusal(_SENTENCE_END.split(text.strip(), maxsplit=1)[0])
