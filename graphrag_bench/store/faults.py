"""Turn what the operating system says of a full, read-only or forbidden disk into one sentence."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphrag_bench.errors import UserError

_SAID = {
    errno.ENOSPC: ("the disk is full", "Free some space and run the same command again; what was finished is kept."),
    errno.EDQUOT: (
        "the disk quota is used up",
        "Free some space and run the same command again; what was finished is kept.",
    ),
    errno.EFBIG: (
        "a file grew past the size this account may write",
        "Raise the limit (ulimit -f) and run the same command again.",
    ),
    errno.EROFS: (
        "the file system is read-only",
        "Point GRAPHRAG_BENCH_STORE (or output=) at a folder you can write to.",
    ),
    errno.EACCES: ("permission was denied", "Point GRAPHRAG_BENCH_STORE (or output=) at a folder you can write to."),
    errno.EPERM: ("permission was denied", "Point GRAPHRAG_BENCH_STORE (or output=) at a folder you can write to."),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "Choose another folder."),
    errno.ENAMETOOLONG: ("a name in the path is too long", "Choose a shorter one."),
    errno.EEXIST: ("a file stands where a folder is needed", "Choose another folder."),
}


def user_path(text: str | Path) -> Path:
    """Return a path as typed, with ``~`` for the home folder; raise UserError where that names nobody."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"{text} begins with the home folder of nobody known here.", "Write the folder's path.") from error


@contextmanager
def disk_faults(what: str, path: Path) -> Iterator[None]:
    """Raise UserError for the disk's faults while doing ``what`` at ``path``; let other errors through."""
    try:
        yield
    except OSError as error:
        said = _SAID.get(error.errno or 0)
        if said is None:
            raise
        raise UserError(f"Cannot {what} ({path}): {said[0]}.", said[1]) from error
