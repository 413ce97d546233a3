"""Print Table 2 of the GraphRAG paper for any index: context units and tokens of the conditions C0, C1, … and TS.

    python scripts/graphrag_table2.py dataset=folder dataset.path=DIR [key=value …]

Settings are those of the command line; the method is graphrag_c0 unless said otherwise. What the store does not hold is built,
so say what builds it. A finished index of Microsoft's: graph=graphrag graph.path=DIR community=none chunking=presplit.
Tokens are counted by chunking.tokenizer. "projected" says how many units are leaves of a coarser level.
"""

import argparse
import asyncio
import sys

from graphrag_bench.cellrun import CellRun
from graphrag_bench.cells import cells
from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.community.conditions import Condition, conditions
from graphrag_bench.errors import UserError
from graphrag_bench.session import Session


async def read(overrides: list[str]) -> list[Condition]:
    chosen = (
        overrides
        if any(override.startswith("method=") for override in overrides)
        else ["method=graphrag_c0", *overrides]
    )
    (cell, *_), _ = cells([*chosen, "until=graph", "logging.display=none"])
    run = CellRun(Session(), cell)
    graph, chunks = await run.stages.graph(), await run.stages.chunks()
    if graph.hierarchy is None or graph.reports is None:
        raise UserError(
            "The graph has no communities with reports.", "Set community=leiden, or import an index that has them."
        )
    starts = load_tokenizer(run.config["chunking"].get("tokenizer", "regex")).starts
    return conditions(graph, chunks, lambda text: len(starts(text)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*")
    try:
        found = asyncio.run(read(parser.parse_args().overrides))
    except UserError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(
        f"{'condition':<10}{'units':>8}{'projected':>11}{'tokens':>12}{'share of TS':>13}{'no report':>11}\n"
    )
    for row in found:
        share = f"{100 * row.share:.1f} %"
        sys.stdout.write(
            f"{row.name:<10}{row.units:>8,}{row.projected:>11,}{row.tokens:>12,}{share:>13}{row.missing:>11,}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
