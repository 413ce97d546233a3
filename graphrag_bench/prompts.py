"""Prompts live in text files beside the code that uses them; a prompt's hash is part of what a run records."""

import hashlib
from functools import cache
from importlib.resources import files
from string import Template


@cache
def prompt(package: str, name: str) -> str:
    """Return the text of ``<package>/prompts/<name>.txt``, without the final newline."""
    return files(package).joinpath("prompts", f"{name}.txt").read_text("utf-8").rstrip("\n")


def render(package: str, name: str, **values: str) -> str:
    """Return a prompt with its ``$fields`` filled in; a field without a value is an error."""
    return Template(prompt(package, name)).substitute(values)


def prompt_hash(package: str, *names: str) -> str:
    """Return a short hash of prompts, for keys and records."""
    return hashlib.sha256("\0".join(prompt(package, name) for name in names).encode()).hexdigest()[:16]
