"""Whole-file writes that are there entirely or not at all."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from graphrag_bench.store.faults import disk_faults


def write_text(path: Path, text: str) -> None:
    """Write a file aside, sync it and rename it into place."""
    with disk_faults("write", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with aside.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document with a stable key order and a final newline."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, sort_keys=False) + "\n")


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write JSON lines."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
