"""The exceptions a user can cause or meet; every one carries a sentence and, where there is one, the fix."""

from collections.abc import Iterable


class UserError(Exception):
    """A mistake the user can mend: printed as one sentence with its fix, exit code 2, no traceback."""

    def __init__(self, problem: str, fix: str = "") -> None:
        self.problem = problem
        self.fix = fix
        super().__init__(f"{problem} {fix}".strip())


class Faults(UserError):
    """Several mistakes found in one pass, reported together."""

    def __init__(self, title: str, faults: Iterable[UserError]) -> None:
        self.faults = tuple(faults)
        lines = "\n".join(f"  {fault.problem}" + (f"\n      {fault.fix}" if fault.fix else "") for fault in self.faults)
        super().__init__(f"{title}\n{lines}")


class BudgetExceeded(UserError):
    """The run's token or money budget is spent; what was finished is kept and a re-run resumes."""


class OperatorFailure(Exception):
    """An operator cannot serve the whole batch (a fault of the batch, not of one question)."""
