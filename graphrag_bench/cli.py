"""The command line: check, plan, run, score, show, list, export. A user's mistake prints one sentence and exits with 2."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from graphrag_bench import __version__
from graphrag_bench.errors import UserError

_EPILOG = """\
settings are Hydra overrides: a group chooses a page (method=hipporag dataset=sample llm=openai), a dotted key sets a value
(method.retrieve.ranked.damping=0.3). With -m a comma lists alternatives: run -m method=bm25,vanilla seed=0,1

examples:
  graphrag-bench run -m method=vanilla,hipporag dataset=sample
  graphrag-bench run method=hipporag dataset=folder dataset.path=DIR graph.extractor=openie until=retrieval
  graphrag-bench plan experiment=demo
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="graphrag-bench",
        description="Build graph-based RAG methods from operators, compare them, trust the numbers.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"graphrag-bench {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, help_: str, act: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        made.set_defaults(act=act)
        return made

    for name, help_, act in (
        ("run", "run methods on datasets and score them", _run),
        ("check", "check the wiring and the data of a run; nothing is spent", _check),
        ("plan", "estimate calls, tokens, disk and money of a run, and say what the store already holds", _plan),
    ):
        made = verb(name, help_, act)
        made.add_argument("-m", "--multirun", action="store_true", help="let commas list alternatives: a sweep")
        if name == "check":
            made.add_argument("--all", action="store_true", help="check every method's page on every graph's page")
        made.add_argument("overrides", nargs="*", metavar="key=value", help="what to run; see the examples of --help")
    show = verb("show", "show a run's configuration, or a page, or a finished run's folder", _show)
    show.add_argument("--config", action="store_true", help="print the full composed configuration")
    show.add_argument("--draw", action="store_true", help="draw the method's wiring as SVG")
    show.add_argument("--out", metavar="FILE", help="where the drawing goes; - prints it (<method>.svg)")
    show.add_argument("overrides", nargs="*", metavar="key=value", help="what to show, or the folder of a run")
    export = verb("export", "write the graph of a run, as the store holds it, for other tools", _export)
    export.add_argument("format", help="graphml | parquet | neo4j")
    export.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    export.add_argument("overrides", nargs="*", metavar="key=value", help="the run that built the graph")
    listing = verb("list", "list components and pages, from their signatures", _list)
    listing.add_argument("kind", nargs="?", help="one kind only: operator, builder, method, …")
    listing.add_argument("--json", action="store_true", help="as JSON")
    score = verb("score", "score a file of answers, ours or not; costs nothing", _score)
    score.add_argument("file", type=Path, help='JSON lines {"id","prediction","answers","retrieved"?,"gold_passages"?}')
    score.add_argument("--metrics", help="names joined by commas, such as accuracy,em,f1,recall,recall@5")
    score.add_argument("--json", action="store_true", help="as JSON, the shape of metrics.json")
    score.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (0)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code: 0, 2 for a user's mistake, 130 after Ctrl-C."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    flags = [text for text in rest if text.startswith("-") and "=" not in text]
    if flags or (rest and not hasattr(options, "overrides")):
        parser.error(f"unrecognized arguments: {' '.join(flags or rest)}")
    if rest:  # Hydra's ~key=value and +key=value may stand anywhere
        options.overrides = [*options.overrides, *rest]
    try:
        code: int = options.act(options)
    except UserError as error:
        sys.stderr.write(f"graphrag-bench: {error}\n")
        return 2
    except ImportError as error:
        if (error.name or "").split(".")[0] in ("graphrag_bench", "operators"):
            raise  # ours: a defect, not an installation
        sys.stderr.write(f"graphrag-bench: A library cannot be loaded: {error}. Re-install graphrag-bench and its extras.\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped. What was finished is kept; run the same command again to resume.\n")
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as `| head` does
        sys.stderr.close()
        return 0
    return code


def _out(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"  # what a plain terminal has no letter for is shown as a question mark
    sys.stdout.write(text.rstrip("\n").encode(encoding, "replace").decode(encoding) + "\n")


def _run(options: argparse.Namespace) -> int:
    from graphrag_bench.experiment import run_to_end

    results = run_to_end(options.overrides, multirun=options.multirun, out=_out)
    return 0 if all(result.status == "done" for result in results) else 1


def _check(options: argparse.Namespace) -> int:
    if options.all:
        from graphrag_bench.support import check_all

        _out(check_all(options.overrides, multirun=options.multirun))
        return 0
    from graphrag_bench.preflight import check

    _out(check(options.overrides, multirun=options.multirun))
    return 0


def _plan(options: argparse.Namespace) -> int:
    from graphrag_bench.preflight import plan

    _out(plan(options.overrides, multirun=options.multirun))
    return 0


def _show(options: argparse.Namespace) -> int:
    from graphrag_bench.inspection import draw, show

    if options.out is not None and not options.draw:
        raise UserError("--out says where a drawing goes, and nothing is drawn.", "Add --draw.")
    if options.draw:
        _out(draw(options.overrides, options.out))
        return 0
    _out(show(options.overrides, config=options.config))
    return 0


def _list(options: argparse.Namespace) -> int:
    from graphrag_bench.inspection import listing

    _out(listing(options.kind, as_json=options.json))
    return 0


def _export(options: argparse.Namespace) -> int:
    from graphrag_bench.exporting import export_graph

    _out(export_graph(options.format, options.out, options.overrides))
    return 0


def _score(options: argparse.Namespace) -> int:
    from graphrag_bench.evaluation.show import run_score

    _out(run_score(options.file, options.metrics, options.json, seed=options.seed))
    return 0
