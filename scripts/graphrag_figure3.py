"""Print Figure 3 of the GraphRAG paper as a table: entity references found, by chunk size and gleaning rounds.

    python scripts/graphrag_figure3.py runs/graphrag_figure3

Reads the cells of `experiment=graphrag_figure3`. A reference is an entity found in a chunk; beside them what they cost.
"""

import argparse
import json
import sys
from pathlib import Path

COLUMNS = ("chunk size", "gleaning", "chunks", "references", "nodes", "relationships", "calls", "tokens")


def rows(output: Path) -> list[tuple[int, ...]]:
    """Return a row a finished cell, by chunk size and rounds."""
    found = []
    for path in output.rglob("run.json"):
        costs = json.loads((path.parent / "costs.json").read_text("utf-8"))["artifacts"]
        if "previous" in path.parts or "extraction" not in costs:
            continue
        settings = dict(override.split("=", 1) for override in json.loads(path.read_text("utf-8"))["overrides"])
        extraction, graph = costs["extraction"], costs["graph"]
        spent = extraction.get("spent") or {}
        tokens = int(spent.get("prompt_tokens", 0)) + int(spent.get("completion_tokens", 0))
        sizes = int(settings["chunking.size"]), int(settings["graph.gleaning"])
        counts = extraction["chunks"], extraction["entities"], graph["nodes"], graph["relationships"]
        found.append((*sizes, *counts, int(spent.get("calls", 0)), tokens))
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    found = rows(parser.parse_args().output)
    if not found:
        sys.stderr.write("There is no finished cell. Run graphrag-bench run experiment=graphrag_figure3 first.\n")
        return 2
    width = max(map(len, COLUMNS)) + 2
    for line in (COLUMNS, *found):
        sys.stdout.write("".join(f"{cell if isinstance(cell, str) else f'{cell:,}':>{width}}" for cell in line) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
