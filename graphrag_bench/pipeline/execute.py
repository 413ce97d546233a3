"""Run a plan over a batch of questions: convert, then every step in order, failures carried along."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.index.vectors import VectorIndex
from graphrag_bench.pipeline.loans import LOANS
from graphrag_bench.pipeline.method import Loop, Plan, Step
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.wires import ASKED, part
from graphrag_bench.registry import Component

Values = dict[str, Any]


async def convert(plan: Plan, lend: Mapping[Any, Any], questions: Questions) -> Questions:
    """Return the questions with what the method asks of them: entities, keywords."""
    for component, settings in plan.converters:
        questions = await _call(component, {**lend, Questions: questions}, {}, settings)
    return questions


def query_texts(plan: Plan, questions: Questions) -> list[str]:
    """Return the texts the plan's operators will look up as vectors, so that they are embedded in one go."""
    texts: dict[str, None] = {}
    for step in plan.operators:
        kinds = [port.annotation for port in step.component.ports if isinstance(port.annotation, type)]
        if "questions" not in step.wires and any(issubclass(kind, VectorIndex) for kind in kinds):
            for row in questions.read(step.settings.get("by", "question")):
                texts.update(dict.fromkeys(row))
    return list(texts)


async def retrieve(plan: Plan, lend: Mapping[Any, Any], questions: Questions) -> Values:
    """Run the steps over one batch and return every step's result by name.

    A question that has failed stays failed in every later value. A step that cannot serve the batch at all (OperatorFailure)
    fails every question of it, with its reason.
    """
    values: Values = {ASKED: questions}
    await _run(plan.steps, values, lend, questions)
    return {name: value for name, value in values.items() if value is not questions}


async def _run(steps: Sequence[Step | Loop], values: Values, lend: Mapping[Any, Any], questions: Questions) -> None:
    for step in steps:
        if isinstance(step, Loop):
            await _loop(step, values, lend, questions)
            continue
        inputs = {port: _joined(step, [look_up(values, name) for name in names]) for port, names in step.wires.items()}
        failed = dict(questions.failed)
        for value in inputs.values():
            failed.update(value.failed)
        try:
            result = await _call(step.component, {**lend, Questions: questions}, inputs, step.settings)
        except OperatorFailure as error:
            failed = {**dict.fromkeys(range(len(questions)), f"operator: {step.component.name}: {error}"), **failed}
            result = _nothing(step.component.returns, questions)
        _keep(values, step.name, result, failed)


def look_up(values: Mapping[str, Any], name: str) -> Any:
    """Return a value, or a part of one, by its name in the page."""
    if name in values:
        return values[name]
    base, _, last = name.rpartition(".")
    made = part(values[base], last)
    made.failed = values[base].failed
    return made


async def _loop(loop: Loop, values: Values, lend: Mapping[Any, Any], questions: Questions) -> None:
    """Run a loop; a question that is done, or has failed, takes no part in further rounds and keeps what it has."""
    size = len(questions)
    everyone = range(size)
    made: dict[str, list[tuple[Sequence[int], Any]]] = {
        inner: [(everyone, look_up(values, outer))] for inner, outer in loop.carry.items()
    }
    began = set(made)
    outside = {name: values[name] for name in sorted(_read_outside(loop, values) - began)}
    failed = dict(questions.failed)
    for value in (*outside.values(), *(parts[0][1] for parts in made.values())):
        failed.update(value.failed)
    active = [number for number in everyone if number not in failed]
    for turn in range(loop.rounds):
        if not active and turn:
            break
        # a round with nobody in it still says of which types the loop's values are
        local: Values = {name: value.take(active) for name, value in outside.items()}
        for name in began:
            local[name] = type(made[name][0][1]).placed(size, made[name]).take(active)
        await _run(loop.steps, local, lend, questions.take(active))
        now: dict[int, str] = {}
        for name, value in local.items():
            now.update(value.failed)
            if name not in outside:
                made.setdefault(name, []).append((active, value))
        failed.update({active[at]: reason for at, reason in now.items()})
        done = local[loop.until].rows if loop.until else (False,) * len(active)
        active = [number for at, number in enumerate(active) if not done[at] and number not in failed]
    for name, parts in made.items():
        kind = type(parts[0][1])
        if kind is Questions:  # who took part in no round keeps its own words
            parts = [(everyone, replace(questions, failed=failed)), *parts]
        united = loop.collect == "union" and kind is not Questions  # of two wordings the later one counts
        value = kind.join([kind.placed(size, [one]) for one in parts]) if united else kind.placed(size, parts)
        _mark(value, failed)
        values[f"{loop.name}.{name}"] = replace(value, failed=failed) if isinstance(value, Questions) else value


def _read_outside(loop: Loop, values: Mapping[str, Any]) -> set[str]:
    """Return the outer values that a loop's steps read."""
    names: set[str] = set()
    for step in loop.steps:
        wired = step.carry.values() if isinstance(step, Loop) else [n for listed in step.wires.values() for n in listed]
        names.update(wired)
        if isinstance(step, Loop):
            names |= _read_outside(step, values)
    return {name if name in values else base for name in names if (base := name.rpartition(".")[0]) in values or name in values}


def _joined(step: Step, values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else type(values[0]).join(values, "sum" if step.join == "sum" else "max")


def _keep(values: Values, name: str, result: Any, failed: Mapping[int, str]) -> None:
    parts = (
        {f"{name}.{field}": value for field, value in result._asdict().items()}
        if hasattr(result, "_asdict")
        else {name: result}
    )
    for key, value in parts.items():
        marked = {**failed, **value.failed}
        values[key] = replace(value, failed=marked) if isinstance(value, Questions) else _mark(value, marked)


def _mark(value: Any, failed: Mapping[int, str]) -> Any:
    if not isinstance(value, Questions):
        value.failed = dict(failed)
    return value


def _nothing(returns: Any, questions: Questions) -> Any:
    """Return what a step that could not serve the batch made: nothing, of the type it returns."""
    if returns is Questions:
        return questions
    if issubclass(returns, tuple):
        return returns(*(_nothing(kind, questions) for kind in returns.__annotations__.values()))
    return returns.empty(len(questions))


async def _call(
    component: Component, lend: Mapping[Any, Any], inputs: Mapping[str, Any], settings: Mapping[str, Any]
) -> Any:
    arguments = {
        port.name: lend[port.annotation]
        for port in component.ports
        if port.annotation in LOANS and port.name not in inputs
    }
    result = component.call(**arguments, **inputs, **settings)
    return await result if inspect.isawaitable(result) else result
