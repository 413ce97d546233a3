"""Copy what a finished run is worth keeping for: its table and each cell's provenance, without any dataset's content.

    python scripts/collect_results.py OUTPUT results/NAME [--tables]

With --tables the tables and figures alone, for sweeps of a hundred cells.
Answers, contexts and questions stay behind (they are the datasets'); paths of this machine are cut to their last part.
"""

import argparse
import json
from pathlib import Path
from typing import Any

KEPT = ("status", "fingerprint", "graphrag_bench", "method", "overrides", "chain", "dataset", "model", "embedder", "prompts",
        "components", "engines", "graph", "python", "numpy", "result")
TABLES = ("table.md", "leaderboard.md", "pareto.md", "pareto.svg", "bars.*.svg")


def cleaned(override: str) -> str | None:
    key, _, value = override.partition("=")
    if key == "output":
        return None
    return f"{key}={Path(value).name}" if "/" in value and key.endswith("path") else override


def provenance(record: dict[str, Any], costs: dict[str, Any]) -> dict[str, Any]:
    kept = {key: record[key] for key in KEPT}
    kept["overrides"] = [text for override in record["overrides"] if (text := cleaned(override))]
    kept["cpu_seconds"] = costs["cpu_seconds"]
    kept["ledger"] = costs["ledger"]  # calls, tokens, seconds and failures by stage and purpose
    kept["built"] = {name: facts["spent"] for name, facts in costs["artifacts"].items() if facts.get("spent")}
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    for path in sorted(path for name in TABLES for path in options.output.glob(name)):
        (options.target / path.name).write_text(path.read_text("utf-8"), "utf-8")
    if options.tables:
        return
    for path in sorted(options.output.rglob("run.json")):
        if "previous" in path.parts:
            continue
        record = provenance(json.loads(path.read_text("utf-8")), json.loads((path.parent / "costs.json").read_text("utf-8")))
        name = "-".join(path.parent.relative_to(options.output).parts)
        text = json.dumps(record, ensure_ascii=False, indent=1)
        (options.target / f"{name}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
