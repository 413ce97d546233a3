"""What a run tells while it works: a protocol, and the silent form of it. The display is in graphrag_bench.display."""

from typing import Protocol


class Progress(Protocol):
    """Receives what happens in a run. Calls may come from any thread."""

    def cell(self, name: str, number: int, of: int) -> None:
        """A cell begins."""
        ...

    def stage(self, name: str, total: int) -> None:
        """A stage of the present cell begins, with ``total`` units of work (0 = not known)."""
        ...

    def advance(self, name: str, done: int = 1) -> None:
        """Units of a stage are done."""
        ...

    def finish(self, name: str, note: str = "") -> None:
        """A stage is done; the note says what came of it ("in the store", "1,890 nodes")."""
        ...

    def call(self, tokens: int, cached: bool) -> None:
        """A model call is done."""
        ...

    def say(self, text: str) -> None:
        """Something the reader should know."""
        ...

    def totals(self) -> str:
        """Return the run's model calls as a sentence; empty when nobody counted."""
        ...


class Silent:
    """Progress nobody looks at; keeps what was said, for tests and callers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def cell(self, name: str, number: int, of: int) -> None:
        """Ignore."""

    def stage(self, name: str, total: int) -> None:
        """Ignore."""

    def advance(self, name: str, done: int = 1) -> None:
        """Ignore."""

    def finish(self, name: str, note: str = "") -> None:
        """Ignore."""

    def call(self, tokens: int, cached: bool) -> None:
        """Ignore."""

    def say(self, text: str) -> None:
        """Keep."""
        self.said.append(text)

    def totals(self) -> str:
        """Return nothing."""
        return ""
