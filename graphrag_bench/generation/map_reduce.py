"""Map-reduce answering: every part of the context is read on its own, what helps is scored, and the best is put together.

The contract is that of GraphRAG's global search (Edge et al., 2024, section 3.1.6): each map call returns points with scores
from 0 to 100, points below a score are dropped, the rest are sorted, packed under a budget, and answered from in one call.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from graphrag_bench.evaluation.refusal import is_refusal
from graphrag_bench.generation.answers import Answer, Answers, Contexts, Item
from graphrag_bench.generation.direct import PROMPTS as DIRECT
from graphrag_bench.generation.direct import cue, instruction, reply_tokens, turns
from graphrag_bench.generation.packs import Reading, alike, by_pack, read
from graphrag_bench.llm.base import ChatModel, Message, Reply, Request
from graphrag_bench.llm.estimate import Calls, Scale, prompt_of, tokens_of
from graphrag_bench.llm.window import PER_MESSAGE, PER_PROMPT, cut_to_window, prompt_tokens
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.prompts import prompt, prompt_hash, render
from graphrag_bench.registry import register

_HERE = "graphrag_bench.generation"
_LEAST, _MOST = 12, 300  # letters of a point: a small model otherwise only numbers its points, or never ends one
_MAP_TOKENS = 80  # of a map reply
_AT_ONCE = 512  # map calls whose prompts are held at a time: a corpus's source texts for each question are too many
_POINTS = "Points:\n"
_OWN = "What is generally known:"
_EXAMPLE = ("map_example", "map_example_reply")
PROMPTS = prompt_hash(_HERE, "map_system", "map", *_EXAMPLE, "reduce_system") + DIRECT


class Point(NamedTuple):
    """What one map call found: a sentence, and how much it helps, 0 to 100."""

    text: str
    score: int


def overhead(settings: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """Return how many tokens a map prompt has beside question and text."""
    fixed = sum(count(prompt(_HERE, name)) for name in ("map_system", "map", *_EXAMPLE)) + int(settings["map_tokens"])
    return fixed + 4 * PER_MESSAGE + PER_PROMPT


def calls(settings: Mapping[str, Any], scale: Scale) -> Calls:
    """Return a call a unit and question, and one a question to answer from the points.

    Packs are as many as the context's tokens fill, one more a layer but the first; where no point is left the last call is
    not made.
    """
    fixed = prompt_of(*(prompt(_HERE, name) for name in ("map_system", "map", *_EXAMPLE))) + scale.question
    units, shown = scale.items, scale.context_tokens
    own = Calls.each(scale.questions if settings["own_answer"] else 0, scale.question, settings["max_tokens"], "at most")
    if settings["unit"] != "item":
        budget = max(min(settings["pack_tokens"], scale.window - overhead(settings, tokens_of)), 1)
        layers = max(len(scale.up_to), 1) if settings["unit"] == "layer" else 1
        units = min(-(-shown // budget) + layers - 1, scale.items)
    said = min(_MAP_TOKENS, settings["map_tokens"])
    units += bool(settings["own_answer"])
    maps = own + Calls.each(scale.questions * units, fixed + shown / max(units, 1), said, "about" if scale.guessed else "at most")
    points = min(units * said, settings["reduce_tokens"], scale.window)
    asked = prompt_of(prompt(_HERE, "reduce_system")) + points + scale.question
    reply = min(reply_tokens(short_answer=settings["short_answer"]), settings["max_tokens"])
    return maps + Calls.each(scale.questions, asked, reply, "at most")


@register("generator", "map_reduce", prompts=PROMPTS, overhead=overhead, whole=True, calls=calls)
async def map_reduce(
    questions: Questions,
    contexts: Contexts,
    model: ChatModel,
    *,
    unit: Literal["item", "pack", "layer"] = "item",
    min_score: int = 1,
    empty: Literal["refuse", "fallback"] = "refuse",
    pack_tokens: int = 8000,
    reduce_tokens: int = 8000,
    map_tokens: int = 384,
    max_points: int = 5,
    shuffle: bool = True,
    seed: int = 0,
    short_answer: bool = True,
    may_refuse: bool = False,
    own_answer: bool = False,
    max_tokens: int = 256,
) -> Answers:
    """Read every unit of the context in a call of its own, then answer from the best points.

    A map call whose reply cannot be read is left out and counted in the answer's reason; a question all of whose map calls
    fail has failed. A unit longer than the window leaves room for is cut at a word. Calls over the same text stand next to
    each other, whatever their questions, so that a runtime that keeps the last prompt's prefix reads each text once.

    Args:
        questions: the batch.
        contexts: one a question; their items are the units' material.
        model: who reads and answers.
        unit: one call an element; packs of elements up to ``pack_tokens``; or packs within a hierarchy layer (ArchRAG).
        min_score: points below it are dropped; 1 drops what does not help at all.
        empty: with no point left, refuse, or answer from the question alone (flagged in the answer's reason).
        pack_tokens: tokens of a pack at most; never more than the window leaves room for.
        reduce_tokens: tokens of points the last call shows at most.
        map_tokens: room for a map reply.
        max_points: points a map call may give.
        shuffle: mix the elements before they are packed, so that no pack holds only the best; the same way for every question.
        seed: of the mixing.
        short_answer: ask for a few words.
        may_refuse: allow "unanswerable".
        own_answer: what the model answers without a context is one more text to read (ArchRAG's code, not its paper).
        max_tokens: room for the answer.
    """
    window = model.window - overhead({"map_tokens": map_tokens}, model.count)
    schema = _schema(max_points)
    task = instruction(short_answer=short_answer, reasoning=False, may_refuse=may_refuse)
    asked_for = cue(short_answer=short_answer, reasoning=False)
    told = f"{prompt(_HERE, 'reduce_system')} {task}"
    bare = (Message("system", told), turns("", _POINTS, "", asked_for)[1])
    last = model.window - max_tokens - prompt_tokens(bare, model.count)
    reading: dict[int, Reading] = {}
    rooms: dict[int, int] = {}  # of a question whose context is read, the tokens that a text may have
    read_before: dict[tuple[tuple[Item, ...], int], Reading] = {}
    done: dict[int, Answer] = {}
    for row in range(len(questions)):
        identity, context = questions.ids[row], contexts[row]
        if row in questions.failed:
            done[row] = Answer(identity, "failed", None, questions.failed[row])
            continue
        asked = model.count(questions.texts[row])
        # the room a text has hangs on the question's length in steps, so that questions share their packs to the letter
        room = window - (asked if window - alike(asked) < 1 else alike(asked))
        items = list(context.items)
        if items and min(room, last - asked) < 1:  # asked over nothing, it would be another method's question
            reason = "too_long: the window leaves no room for a context"
            done[row] = Answer(identity, "failed", None, reason, cut=context.cut)
            continue
        if shuffle and unit != "item":
            random.Random(seed).shuffle(items)
        same = (tuple(items), room)
        if same not in read_before:
            read_before[same] = read(items, unit, min(pack_tokens, room), room, model.count)
        reading[row], rooms[row] = read_before[same], room
    if own_answer:
        own = await _own_answers(questions, rooms, model, short_answer, max_tokens)
        reading = {row: Reading((*made.packs, *own[row]), made.shortened) for row, made in reading.items()}
    calls = by_pack(reading)
    replies: dict[tuple[int, int], Reply] = {}
    for begin in range(0, len(calls), _AT_ONCE):
        some = calls[begin : begin + _AT_ONCE]
        asking = [
            _map(reading[row].packs[at], questions.texts[row], questions.ids[row], schema, map_tokens)
            for row, at in some
        ]
        replies.update(zip(some, await model.ask_all(asking), strict=True))
    heard = {row: [replies[row, at] for at in range(len(made.packs))] for row, made in reading.items()}
    final: dict[int, tuple[Request, str, int]] = {}
    for row, made in reading.items():
        identity, question, lost = questions.ids[row], questions.texts[row], contexts[row].cut + made.shortened
        failures = [reply.failure for reply in heard[row] if reply.failure]
        if made.packs and len(failures) == len(made.packs):
            reason = f"{failures[0].kind}: every one of {len(failures)} map calls failed; the first: {failures[0].message}"
            done[row] = Answer(identity, "failed", None, reason, cut=lost)
            continue
        points = _best(heard[row], min_score)
        note = f"{len(failures)} of {len(made.packs)} map calls failed" if failures else ""
        if not points and empty == "refuse":
            said = f"no point scored {min_score} or more" if made.packs else "nothing was retrieved"
            done[row] = Answer(identity, "refused", "unanswerable", "; ".join(filter(None, [note, said])), cut=lost)
            continue
        shown, cut = _reduced(points, min(reduce_tokens, last - model.count(question)), model.count)
        said = "" if points else "answered from the question alone: no point was left"
        messages = turns(question, shown, task, asked_for)
        if points:
            messages = (Message("system", told), messages[1])
        request = Request(messages, max_tokens, "answer", "reduce", identity)
        final[row] = (request, "; ".join(filter(None, [note, said])), lost + cut)
    ends = await model.ask_all([request for request, _, _ in final.values()])
    for (row, (_, note, lost)), reply in zip(final.items(), ends, strict=True):
        done[row] = _answer(questions.ids[row], reply, note, lost)
    return tuple(done[row] for row in range(len(questions)))


async def _own_answers(
    questions: Questions, rooms: Mapping[int, int], model: ChatModel, short_answer: bool, max_tokens: int
) -> dict[int, list[str]]:
    """Return what the model says to each question by itself, as a text for a map call; nothing where that call failed."""
    task = instruction(short_answer=short_answer, reasoning=True, may_refuse=False)
    asked_for = cue(short_answer=short_answer, reasoning=True)
    requests = [
        Request(turns(questions.texts[row], "", task, asked_for), max_tokens, "answer", "own", questions.ids[row])
        for row in rooms
    ]
    replies = await model.ask_all(requests)
    texts = [reply.text.strip() if reply.failure is None else "" for reply in replies]
    shown = [cut_to_window(f"{_OWN}\n{text}", room, model.count) for text, room in zip(texts, rooms.values(), strict=True)]
    return {row: [own] if text and own else [] for row, text, own in zip(rooms, texts, shown, strict=True)}


def _answer(identity: str, reply: Reply, note: str, cut: int) -> Answer:
    if reply.failure is not None:
        return Answer(identity, "failed", None, f"{reply.failure.kind}: {reply.failure.message}", reply.text, cut)
    text = reply.text.strip()
    return Answer(identity, "refused" if is_refusal(text) else "ok", text, note, "", cut)


def _map(text: str, question: str, identity: str, schema: dict[str, Any], max_tokens: int) -> Request:
    """Return a map call: a worked example as turns before, without which small models write no sentences; then the text.

    The question stands last: what is before it is what calls for other questions share.
    """
    messages = (
        Message("system", prompt(_HERE, "map_system")),
        Message("user", prompt(_HERE, _EXAMPLE[0])),
        Message("assistant", prompt(_HERE, _EXAMPLE[1])),
        Message("user", f"{text}\n\n{render(_HERE, 'map', question=question)}"),
    )
    return Request(messages, max_tokens, "answer", "map", identity, schema)


# at least one point: free to give none, a small model gives none whatever the text says; what does not help scores 0
def _schema(most: int) -> dict[str, Any]:
    point = {
        "type": "object",
        "properties": {
            "point": {"type": "string", "minLength": _LEAST, "maxLength": _MOST},
            "score": {"type": "integer", "minimum": 0, "maximum": 100},
        },
        "required": ["point", "score"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"points": {"type": "array", "items": point, "minItems": 1, "maxItems": most}},
        "required": ["points"],
        "additionalProperties": False,
    }


def _best(replies: Iterable[Reply], min_score: int) -> list[Point]:
    """Return the points that reach the score, best first; equals in the order of their calls."""
    points = [
        Point(" ".join(str(point["point"]).split()), int(point["score"]))
        for reply in replies
        if reply.failure is None
        for point in reply.data["points"]
    ]
    best: dict[str, int] = {}
    for point in points:  # the same sentence from two calls counts once, with its better score
        if point.text and point.score >= min_score:
            best[point.text] = max(point.score, best.get(point.text, 0))
    return sorted((Point(*pair) for pair in best.items()), key=lambda point: -point.score)


def _reduced(points: Iterable[Point], budget: int, count: Callable[[str], int]) -> tuple[str, int]:
    """Return the points as the last call shows them, and how many did not fit."""
    lines: list[str] = []
    lost = 0
    for number, point in enumerate(points, 1):
        line = f"[{number}] (score {point.score}) {point.text}"
        size = count(line + "\n")
        if lost or size > budget:
            lost += 1
            if not lines and number == 1 and (line := cut_to_window(line, budget, count)):
                lines.append(line)  # a part of the best point, sooner than none at all
            continue
        lines.append(line)
        budget -= size
    return (_POINTS + "\n".join(lines) if lines else ""), lost
