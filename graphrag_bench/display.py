"""The display of a run: a live table on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any, TextIO

from graphrag_bench.progress import Progress, Silent

_PLAIN_EVERY_S = 10.0


@dataclass
class _Stage:
    name: str
    total: int
    done: int = 0
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    note: str = ""

    def eta(self) -> str:
        if self.ended is not None or not self.done or not self.total:
            return ""
        left = (time.monotonic() - self.started) / self.done * (self.total - self.done)
        return f"{left:.0f} s left" if left < 90 else f"{left / 60:.0f} min left"

    def seconds(self) -> float:
        return (self.ended or time.monotonic()) - self.started


class _Board:
    """What both displays keep: the present cell, its stages, the tokens."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.title = ""
        self.stages: dict[str, _Stage] = {}
        self.tokens = 0
        self.calls = 0
        self.cached = 0

    def cell(self, name: str, number: int, of: int) -> None:
        with self.lock:
            self.title, self.stages = f"cell {number}/{of}  {name}", {}
            self.changed(None)

    def stage(self, name: str, total: int) -> None:
        with self.lock:
            self.stages[name] = _Stage(name, total)
            self.changed(None)

    def advance(self, name: str, done: int = 1) -> None:
        with self.lock:
            if name in self.stages:
                self.stages[name].done += done
                self.changed(self.stages[name])

    def finish(self, name: str, note: str = "") -> None:
        with self.lock:
            stage = self.stages.setdefault(name, _Stage(name, 0))
            stage.ended, stage.note = time.monotonic(), note
            stage.done = stage.total or stage.done
            self.finished(stage)

    def call(self, tokens: int, cached: bool) -> None:
        with self.lock:
            self.calls += 1
            self.cached += cached
            self.tokens += 0 if cached else tokens

    def changed(self, stage: _Stage | None) -> None:
        """Something moved."""

    def finished(self, stage: _Stage) -> None:
        """A stage ended."""

    def totals(self) -> str:
        """Return the model calls so far, and what was paid for."""
        made = self.calls - self.cached
        return f"{made:,} model calls made, {self.cached:,} answered from the cache, {self.tokens:,} tokens spent"


class PlainDisplay(_Board):
    """One line a stage, and one every ten seconds while it lasts."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.flush()

    def _line(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def cell(self, name: str, number: int, of: int) -> None:
        """Say which cell begins."""
        super().cell(name, number, of)
        self._line(self.title)

    def changed(self, stage: _Stage | None) -> None:
        """Report a long stage now and then."""
        if stage is not None and time.monotonic() - self._last > _PLAIN_EVERY_S:
            self._last = time.monotonic()
            self._line(f"  {stage.name}: {stage.done}/{stage.total}  {stage.eta()}  {self.totals()}")

    def finished(self, stage: _Stage) -> None:
        """Report a stage's end."""
        amount = f" {stage.done}" if stage.done else ""
        note = f"  {stage.note}" if stage.note else ""
        self._line(f"  {stage.name}:{amount} done in {stage.seconds():.1f} s{note}")

    def say(self, text: str) -> None:
        """Print a notice."""
        self._line(f"  note: {text}")


class LiveDisplay(_Board):
    """A table of the present cell's stages, redrawn in place."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self._console = Console(stderr=True)
        self._live = Live(get_renderable=self._draw, console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Progress:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def _draw(self) -> Any:
        from rich.table import Table

        with self.lock:
            table = Table(title=self.title, caption=self.totals(), title_justify="left", caption_justify="left")
            for heading in ("stage", "done", "time", ""):
                table.add_column(heading, justify="right" if heading in ("done", "time") else "left")
            for stage in self.stages.values():
                done = f"{stage.done:,}/{stage.total:,}" if stage.total else f"{stage.done:,}" if stage.done else ""
                state = stage.note or ("done" if stage.ended else stage.eta() or "…")
                table.add_row(stage.name, done, f"{stage.seconds():.1f} s", state)
            return table

    def cell(self, name: str, number: int, of: int) -> None:
        """Begin a new table; the finished one stays above."""
        if self.stages:
            self._console.print(self._draw())
        super().cell(name, number, of)

    def say(self, text: str) -> None:
        """Print a notice above the table."""
        self._console.print(f"note: {text}", highlight=False, markup=False)


def display(kind: str, stream: TextIO | None = None) -> Any:
    """Return the display a run asks for, as a context manager that gives a Progress.

    Args:
        kind: live, plain, none, or auto: live on a terminal, else plain.
        stream: where plain lines go; standard error unless given.
    """
    out = stream or sys.stderr
    if kind == "none":
        return _Quiet()
    if kind == "live" or (kind == "auto" and out.isatty()):
        return LiveDisplay()
    return PlainDisplay(out)


class _Quiet(Silent):
    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        return None
