"""Run a plan over a batch of questions: convert, then every step in order, failures carried along."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_bench.errors import OperatorFailure
from graphrag_bench.index.vectors import VectorIndex
from graphrag_bench.pipeline.loans import LOANS
from graphrag_bench.pipeline.plan import Plan, Step
from graphrag_bench.pipeline.texts import Questions
from graphrag_bench.pipeline.values import Ranking
from graphrag_bench.registry import Component


async def convert(plan: Plan, lend: Mapping[type, Any], questions: Questions) -> Questions:
    """Return the questions with what the method asks of them: entities, keywords."""
    for component, settings in plan.converters:
        questions = await _call(component, {**lend, Questions: questions}, {}, settings)
    return questions


def query_texts(plan: Plan, questions: Questions) -> list[str]:
    """Return the texts the plan's operators will look up as vectors, so that they are embedded in one go."""
    texts: dict[str, None] = {}
    for step in plan.steps:
        kinds = [port.annotation for port in step.component.ports if isinstance(port.annotation, type)]
        if any(issubclass(kind, VectorIndex) for kind in kinds):
            for row in questions.read(step.settings.get("by", "question")):
                texts.update(dict.fromkeys(row))
    return list(texts)


async def retrieve(plan: Plan, lend: Mapping[type, Any], questions: Questions) -> dict[str, Any]:
    """Run the steps over one batch and return every step's result by name.

    A question that has failed stays failed in every later value. A step that cannot serve the batch at all (OperatorFailure)
    fails every question of it, with its reason.
    """
    values: dict[str, Any] = {}
    lend = {**lend, Questions: questions}
    for step in plan.steps:
        inputs = {port: _joined(step, [values[name] for name in names]) for port, names in step.wires.items()}
        failed = dict(questions.failed)
        for value in inputs.values():
            failed.update(value.failed)
        try:
            result = await _call(step.component, lend, inputs, step.settings)
        except OperatorFailure as error:
            failed = {**dict.fromkeys(range(len(questions)), f"operator: {step.component.name}: {error}"), **failed}
            result = _nothing(step.component.returns, questions)
        _keep(values, step, result, failed)
    return values


def _joined(step: Step, values: Sequence[Ranking]) -> Ranking:
    return values[0] if len(values) == 1 else type(values[0]).join(values, "sum" if step.join == "sum" else "max")


def _keep(values: dict[str, Any], step: Step, result: Any, failed: Mapping[int, str]) -> None:
    parts = (
        {f"{step.name}.{name}": part for name, part in result._asdict().items()}
        if hasattr(result, "_asdict")
        else {step.name: result}
    )
    for name, value in parts.items():
        marked = {**failed, **value.failed}
        if isinstance(value, Questions):
            value = replace(value, failed=marked)
        else:
            value.failed = marked
        values[name] = value


def _nothing(returns: Any, questions: Questions) -> Any:
    """Return what a step that could not serve the batch made: nothing, of the type it returns."""
    if returns is Questions:
        return questions
    if issubclass(returns, tuple):
        return returns(*(kind.empty(len(questions)) for kind in returns.__annotations__.values()))
    return returns.empty(len(questions))


async def _call(
    component: Component, lend: Mapping[type, Any], inputs: Mapping[str, Any], settings: Mapping[str, Any]
) -> Any:
    arguments = {
        port.name: lend[port.annotation]
        for port in component.ports
        if port.annotation in LOANS and port.name not in inputs
    }
    result = component.call(**arguments, **inputs, **settings)
    return await result if inspect.isawaitable(result) else result
