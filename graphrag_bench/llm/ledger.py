"""What every model call cost, and the budget that stops a run before it costs too much."""

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from graphrag_bench.errors import BudgetExceeded, UserError
from graphrag_bench.llm.base import FailureKind
from graphrag_bench.registry import nearest

_LINES_HELD = 32  # what a killed process may lose of the ledger's file; the replies themselves are in the cache


@dataclass(frozen=True, slots=True)
class Entry:
    """One call as it is booked. A cached call carries the cost of the original one."""

    stage: str
    purpose: str
    subject: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    retries: int
    cached: bool
    failure: FailureKind | None = None


@dataclass(slots=True)
class Totals:
    """Sums over calls.

    Tokens, seconds and retries count cached calls too: they are what the work costs, whoever paid, and so do not change
    when a run is resumed. ``paid_*`` is what this run really spent.
    """

    calls: int = 0
    cached: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    retries: int = 0
    paid_prompt_tokens: int = 0
    paid_completion_tokens: int = 0

    def add(self, entry: Entry) -> None:
        """Count one call."""
        self.calls += 1
        self.prompt_tokens += entry.prompt_tokens
        self.completion_tokens += entry.completion_tokens
        self.seconds += entry.seconds
        self.retries += entry.retries
        if entry.failure is not None:
            self.failed[entry.failure] = self.failed.get(entry.failure, 0) + 1
        if entry.cached:
            self.cached += 1
        else:
            self.paid_prompt_tokens += entry.prompt_tokens
            self.paid_completion_tokens += entry.completion_tokens

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON, failures by kind in the order of their names."""
        return {**asdict(self), "failed": dict(sorted(self.failed.items()))}


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model asks for a million prompt tokens and a million completion tokens."""

    prompt: float
    completion: float

    @classmethod
    def of(cls, model: str, table: Mapping[str, Any]) -> "Prices":
        """Look a model up in a price table: ``{model: {prompt: 0.15, completion: 0.60}}``, per million tokens."""
        found = table.get(model)
        if found is None:
            raise UserError(f"The price table does not have the model {model!r}.", nearest(model, table))
        try:
            return cls(float(found["prompt"]), float(found["completion"]))
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"The price of {model!r} is not readable: {found!r}.",
                            "Write {prompt: NUMBER, completion: NUMBER}, per million tokens.") from error

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the price of so many tokens."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """The most a run may spend on calls that are not cached: tokens, money, or both."""

    tokens: int | None = None
    money: float | None = None


class Ledger:
    """Books every call; safe to use from several threads.

    Args:
        path: A JSON-lines file to which entries are appended; none is written if not given.
        budget: Checked by ``check``.
        prices: Needed for a budget in money.
    """

    def __init__(self, path: Path | None = None, *, budget: Budget | None = None, prices: Prices | None = None) -> None:
        self.path = path
        self.budget = budget or Budget()
        self.prices = prices
        if self.budget.money is not None and prices is None:
            raise UserError("A budget in money needs the prices of the model.",
                            "Add the model to conf/prices.yaml, or give the budget in tokens.")
        self._lock = threading.Lock()
        self._cells: dict[tuple[str, str], Totals] = {}
        self._all = Totals()
        self._held: list[str] = []
        self._file: TextIO | None = None

    def book(self, entry: Entry) -> None:
        """Add one call to the totals and to the file."""
        with self._lock:
            self._all.add(entry)
            self._cells.setdefault((entry.stage, entry.purpose), Totals()).add(entry)
            if self.path is not None:
                self._held.append(json.dumps(asdict(entry), ensure_ascii=False))
                if len(self._held) >= _LINES_HELD:
                    self._write()

    def check(self) -> None:
        """Raise BudgetExceeded if what was spent has reached the budget."""
        tokens = self._all.paid_prompt_tokens + self._all.paid_completion_tokens
        if self.budget.tokens is not None and tokens >= self.budget.tokens:
            raise self._exceeded(f"{self.budget.tokens:,} tokens", f"{tokens:,}")
        if self.budget.money is not None and self.spent >= self.budget.money:
            raise self._exceeded(f"{self.budget.money:.2f} (in the price table's currency)", f"{self.spent:.2f}")

    @property
    def spent(self) -> float:
        """Return the money this run has spent; 0 without prices."""
        if self.prices is None:
            return 0.0
        return self.prices.cost(self._all.paid_prompt_tokens, self._all.paid_completion_tokens)

    def totals(self) -> Totals:
        """Return the sums over all calls."""
        with self._lock:
            return _sum([self._all])

    def by_stage(self) -> dict[str, Totals]:
        """Return the sums for each stage, by name."""
        with self._lock:
            stages = sorted({stage for stage, _ in self._cells})
            return {stage: _sum([cell for key, cell in self._cells.items() if key[0] == stage]) for stage in stages}

    def by_purpose(self) -> dict[tuple[str, str], Totals]:
        """Return the sums for each (stage, purpose), by name."""
        with self._lock:
            return {key: _sum([self._cells[key]]) for key in sorted(self._cells)}

    def as_dict(self) -> dict[str, Any]:
        """Return all sums as plain JSON: ``{total, stages: {stage: {…, purposes: {purpose: {…}}}}}``."""
        stages: dict[str, Any] = {name: {**cell.as_dict(), "purposes": {}} for name, cell in self.by_stage().items()}
        for (stage, purpose), cell in self.by_purpose().items():
            stages[stage]["purposes"][purpose] = cell.as_dict()
        return {"total": self.totals().as_dict(), "stages": stages}

    def flush(self) -> None:
        """Write what is still held to the file."""
        with self._lock:
            self._write()

    def close(self) -> None:
        """Flush and close the file; booking may go on and opens it again."""
        with self._lock:
            self._write()
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self) -> None:
        if self.path is None or not self._held:
            return
        try:
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("a", encoding="utf-8", errors="backslashreplace")
            self._file.write("\n".join(self._held) + "\n")
            self._file.flush()
        except OSError as error:
            raise UserError(f"The ledger {self.path} cannot be written: {error.strerror or error}.",
                            "Free some space or make its folder writable, then run again.") from error
        self._held.clear()

    def _exceeded(self, limit: str, spent: str) -> BudgetExceeded:
        return BudgetExceeded(f"The budget of {limit} is spent ({spent}); every finished call is kept.",
                              "Run again with a larger budget to go on from here.")


def _sum(parts: list[Totals]) -> Totals:
    whole = Totals()
    for part in parts:
        for name in ("calls", "cached", "prompt_tokens", "completion_tokens", "seconds", "retries",
                     "paid_prompt_tokens", "paid_completion_tokens"):
            setattr(whole, name, getattr(whole, name) + getattr(part, name))
        for kind, count in part.failed.items():
            whole.failed[kind] = whole.failed.get(kind, 0) + count
    return whole
