"""What the importers of finished graphs share: counts of what is left out, digests of files, names as they were meant."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_bench.errors import UserError
from graphrag_bench.store.faults import user_path

_BLOCK = 1 << 20


@dataclass
class Tally:
    """Counts what an import leaves out, by reason."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, reason: str, count: int = 1) -> None:
        """Count something, where there is anything."""
        if count:
            self.counts[reason] = self.counts.get(reason, 0) + count


def existing(path: str, setting: str) -> Path:
    """Return a file or folder named by a setting; raise UserError where there is none."""
    place = user_path(path)
    if not place.exists():
        raise UserError(f"{place} does not exist.", f"Check {setting}.")
    return place


def files_digest(files: Iterable[Path]) -> str:
    """Return the SHA-256 of files' names and bytes: what the key of an import hangs on.

    Raises:
        UserError: A file cannot be read.
    """
    hashed = hashlib.sha256()
    for path in files:
        hashed.update(f"{path.name}\0".encode())
        try:
            hashed.update(f"{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while block := file.read(_BLOCK):
                    hashed.update(block)
        except OSError as error:
            raise UserError(
                f"{path} cannot be read: {error.strerror or error}.", "Name a file that can be read."
            ) from None
    return hashed.hexdigest()


def unquoted(text: str) -> str:
    """Return a name without the pair of quotation marks that models, and older indexes, put around it."""
    text = " ".join(text.split())
    while len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    return text
