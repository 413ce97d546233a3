"""What the verbs say: check, plan, show, list, score, and the light start of the command line."""

import json
import re
import subprocess
import sys

import pytest
import yaml

HEAVY = ("numpy", "scipy", "pyarrow", "hydra", "omegaconf", "pydantic", "openai", "rich", "yaml", "jsonschema", "bm25s",
         "tokenizers", "xllamacpp", "onnxruntime", "pandas", "asyncio")


@pytest.mark.parametrize("code", [
    "import graphrag_bench.cli",
    "from graphrag_bench.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert stop.code == 0",
    "from graphrag_bench.cli import main\nassert main(['score', 'no such file']) == 2",
])
def test_the_command_line_starts_light(code):
    """Nothing heavy is read before it is used; what the verb `score` needs of numpy is its own."""
    heavy = tuple(name for name in HEAVY if "score" not in code or name in ("hydra", "pyarrow", "openai", "rich", "pydantic"))
    told = f"\nimport sys\nloaded = [name for name in {heavy!r} if name in sys.modules]\nassert not loaded, loaded"
    done = subprocess.run([sys.executable, "-c", code + told], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_help_names_every_verb(world):
    told = world.run("--help", verb="run", usual=False)
    assert told.code == 0
    overview = subprocess.run([sys.executable, "-m", "graphrag_bench", "--help"], capture_output=True, text=True, timeout=60)
    for verb in ("run", "check", "plan", "show", "list", "score"):
        assert f"\n    {verb} " in overview.stdout
    assert "examples:" in overview.stdout
    from graphrag_bench import __version__

    version = subprocess.run([sys.executable, "-m", "graphrag_bench", "--version"], capture_output=True, text=True, timeout=60)
    assert version.stdout == f"graphrag-bench {__version__}\n"


def test_list_shows_every_kind_with_its_components(world):
    told = world.run(verb="list", usual=False)
    assert told.code == 0
    for line in ("operator (", "builder (", "method (", "experiment (", "  node.ppr ", "  hipporag ", "  recall@k "):
        assert line in told.out


@pytest.mark.parametrize("kind", ["operator", "operators", "metric", "chat_model", "method", "experiment"])
def test_list_of_one_kind_as_text_and_json(world, kind):
    told = world.run(kind, verb="list", usual=False)
    rows = json.loads(world.run(kind, "--json", verb="list", usual=False).out)
    assert told.out.startswith(f"{kind.rstrip('s')} ({len(rows)})\n")
    for row in rows:
        assert f"  {row['name']} " in told.out
        assert row["kind"] == kind.rstrip("s")
        assert row["summary"]


def test_list_is_made_from_the_signatures(world):
    rows = {row["name"]: row for row in json.loads(world.run("operator", "--json", verb="list", usual=False).out)}
    ppr = rows["node.ppr"]
    assert ppr["takes"] == {"graph": "Graph", "seeds": "Nodes"}
    assert ppr["settings"]["damping"] == {"type": "float", "default": 0.85}
    assert ppr["returns"] == "Nodes"
    assert json.loads(world.run("--json", verb="list", usual=False).out)["operator"] == list(rows.values())


def test_show_prints_the_page_and_its_chain(world):
    told = world.run("method=hipporag", verb="show", usual=False)
    assert told.code == 0
    assert told.out.startswith("# conf/method/hipporag.yaml\n# Link + PPR | Aggregator")
    assert "chain: entities.model > node.link > node.ppr(linked) > relationship.aggregator(ranked)" in told.out


def test_show_config_can_be_read_and_holds_what_was_asked(world):
    told = world.run("method=hipporag", "method.retrieve.ranked.damping=0.3", "limit=7", "--config", verb="show", usual=False)
    config = yaml.safe_load(told.out)
    assert config["method"]["retrieve"]["ranked"]["damping"] == 0.3
    assert config["method"]["retrieve"]["chunks"]["top_k"] == config["retrieval_depth"] == 20  # resolved
    assert config["limit"] == 7
    assert config["graph"]["builder"] == "kg"  # as the method requires
    assert set(config) >= {"method", "dataset", "chunking", "graph", "index", "embedder", "llm", "evaluation", "execution",
                           "logging", "output", "until", "limit", "batch_size", "seed", "retrieval_depth"}


def test_show_of_a_finished_run(finished):
    told = finished.run(str(finished.out / "vanilla/sample-demo"), verb="show", usual=False)
    record = json.loads(told.out)
    assert record["status"] == "done"
    assert record["chain"] == "chunk.vdb > context(chunks) > direct"


def test_check_says_what_a_run_would_be_and_spends_nothing(world):
    before, replies = world.files(), world.replies()
    told = world.run("-m", "method=zeroshot,bm25,hipporag", verb="check")
    assert (told.code, told.err) == (0, "")
    assert "BM25 on sample-demo: chunk.bm25 > context(chunks) > direct" in told.out
    assert "graph kg, indexes node vectors, 16 documents, 12 questions" in told.out
    assert "graph none, indexes lexical index, 16 documents, 12 questions" in told.out
    assert told.out.endswith("3 cells checked and probed; nothing was spent.\n")
    assert (world.files(), world.replies()) == (before, replies)


def test_check_says_which_override_has_no_effect_where(world):
    told = world.run("-m", "method=zeroshot,hipporag", "method.retrieve.ranked.damping=0.3", verb="check")
    assert told.code == 0
    assert "note: method.retrieve.ranked.damping=0.3 has no effect on zeroshot; it applies to the other cells" in told.out


def planned(text):
    """Return the plan's table as {(cell, stage): [calls, prompt tokens, reply tokens, MB, money, state]}."""
    found = {}
    for line in text.splitlines():
        parts = re.split(r"\s{2,}", line.strip())
        if parts[0] == "to pay":
            found["to pay"] = parts[1:]
        elif parts[0] in ("VanillaRAG", "HippoRAG"):
            found[parts[0], parts[1]] = [*parts[2:], ""][:6]
    return found


def test_plan_estimates_then_says_what_is_in_the_store(world):
    told = world.run("method=hipporag", verb="plan")
    assert (told.code, told.err) == (0, "")
    before = planned(told.out)
    assert before["HippoRAG", "chunks"][5] == "in the store"  # the finished run of vanilla has them
    assert before["HippoRAG", "extraction"][::5] == ["32", ""]  # two calls for each of 16 chunks
    assert before["HippoRAG", "question"][0] == before["HippoRAG", "answer"][0] == "12"
    assert before["to pay"][0] == "56"
    assert before["to pay"][4] == "–"  # nobody knows the price of this model
    assert f"store: {world.store} (" in told.out
    assert not (world.store / "extraction").exists()

    assert world.run("method=hipporag").code == 0
    after = planned(world.run("method=hipporag", "output=" + str(world.root / "other"), verb="plan").out)
    for stage in ("chunks", "extraction", "graph", "node vectors"):
        assert after["HippoRAG", stage][5] == "in the store"
    assert after["to pay"][0] == "24"  # no answer can be known by its prompt before it is retrieved


def test_plan_counts_what_cells_share_once(world):
    plan = planned(world.run("-m", "method=vanilla,hipporag", "chunking.size=300", "output=" + str(world.root / "other"),
                             verb="plan").out)
    assert plan["VanillaRAG", "chunks"][5] == ""
    assert plan["HippoRAG", "chunks"][5] == "shared with a cell above"
    assert plan["to pay"][0] == "68"


def test_plan_counts_money_where_there_is_a_price(world):
    told = world.run("llm=openai", "llm.model=gpt-4o", "dataset.subset=all", verb="plan")
    assert told.code == 0
    plan = planned(told.out)
    calls, prompt, reply, _, money, _ = plan["VanillaRAG", "answer"]
    cost = (int(prompt.replace(",", "")) * 2.50 + int(reply.replace(",", "")) * 10.00) / 1e6
    assert calls == "87"
    assert money == plan["to pay"][4] == f"{cost:.2f}"
    assert float(money) > 0


def test_score_as_a_table_and_as_json(world, tmp_path):
    answers = [
        {"id": "a", "prediction": "Ada Brown", "answers": ["Ada Brown"], "retrieved": ["d1"], "gold_passages": ["d1"]},
        {"id": "b", "prediction": "in Rome", "answers": ["Paris"], "retrieved": ["d2", "d3"], "gold_passages": ["d3"]},
        {"id": "c", "prediction": None, "answers": ["x"], "status": "failed", "reason": "timeout: late"},
    ]
    file = world.write("answers.jsonl", "".join(json.dumps(row) + "\n" for row in answers))
    told = world.run(str(file), "--metrics", "accuracy,recall@1,recall@2", verb="score", usual=False)
    assert told.code == 0
    assert told.out.startswith("3 asked, 2 answered, 1 failed † (1 timeout), 0 refused\n")
    assert "accuracy  Accuracy   33.3" in told.out

    scores = json.loads(world.run(str(file), "--metrics", "accuracy,recall@1,recall@2", "--json", verb="score", usual=False).out)
    assert (scores["asked"], scores["answered"], scores["failed"]) == (3, 2, {"timeout": 1})
    values = {name: round(score["value"], 4) for name, score in scores["metrics"].items()}
    assert values == {"accuracy": 0.3333, "recall@1": 0.5, "recall@2": 1.0}


def test_a_terminal_without_the_letters_is_no_fault(finished):
    done = subprocess.run([sys.executable, "-m", "graphrag_bench", "list", "method"], capture_output=True, timeout=60,
                          env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    assert done.returncode == 0, done.stderr
    assert b"Guti?rrez" in done.stdout or b"hipporag" in done.stdout


def test_a_reader_that_goes_away_is_no_fault():
    done = subprocess.run(f"{sys.executable} -m graphrag_bench list --json | head -c 10", shell=True, capture_output=True,
                          text=True, timeout=60)
    assert done.stdout == '{\n  "opera'
    assert done.stderr == ""


def test_the_plain_display_tells_the_stages(world):
    told = world.run("method=hipporag", "logging.display=plain")
    assert "cell 1/1  HippoRAG · sample-demo" in told.err
    for stage in ("extraction: 16 done", "graph: done", "retrieval: 12 done", "answers: 12 done"):
        assert f"  {stage} in " in told.err
    assert "model calls made" in told.out
    assert told.out.count("Results: ") == 1
