"""Community quality within a run: asked for by a setting, measured once the graph is there, shown in tables."""

import json

WITH = ("community=leiden", "community.reports=null", "graph.extractor=noun_phrase")


def told(bench, method="hipporag"):
    return json.loads((bench.cell(method) / "communities.json").read_text("utf-8"))


def test_a_run_that_stops_at_the_graph_measures_its_communities(bench):
    arguments = ("method=hipporag", *WITH, "until=graph", "evaluation.communities=[chi,similarity]")
    done = bench.run(*arguments)
    assert done.code == 0, done.err
    head = done.out.splitlines()[0]
    assert all(
        label in head for label in ("Communities", "In a community (%)", "CHI", "Cosine similarity", "Index seconds")
    )
    found = told(bench)
    finest = found["levels"][found["finest"]]
    assert [level["level"] for level in found["levels"]] == list(range(found["finest"] + 1))
    assert set(finest["metrics"]) == {"count", "clustered", "chi", "similarity"}
    assert finest["metrics"]["count"] == finest["sizes"]["communities"] > 1
    row = json.loads((bench.out / "table.json").read_text("utf-8"))["rows"][0]["values"]
    assert row["community/chi"]["value"] == finest["metrics"]["chi"]
    record = json.loads((bench.cell("hipporag") / "run.json").read_text("utf-8"))
    assert (
        "communities.json" in record["files"] and "community_metric chi" in record["components"] and record["embedder"]
    )
    again = bench.run(*arguments)
    assert again.code == 0 and "finished before" in again.err and again.out.splitlines()[0] == head
    (bench.cell("hipporag") / "communities.json").write_text("{}", "utf-8")
    assert "missing or changed" in bench.run(*arguments).err and told(bench) == found


def test_it_stands_beside_what_retrieval_scored(bench):
    done = bench.run(
        "method=hipporag",
        *WITH,
        "method.question.entities.by=rule",
        "until=retrieval",
        "evaluation.communities=[modularity]",
    )
    assert done.code == 0, done.err
    columns = [column["name"] for column in json.loads((bench.out / "table.json").read_text("utf-8"))["columns"]]
    assert columns[:4] == ["community/count", "community/clustered", "community/modularity", "recall@2"]


def test_without_communities_it_is_said_and_nothing_is_measured(bench):
    done = bench.run("method=bm25", "until=retrieval", "evaluation.communities=[chi]")
    assert done.code == 0 and "evaluation.communities has no effect on bm25" in done.err
    assert not (bench.cell("bm25") / "communities.json").exists()


def test_an_unknown_metric_is_said_before_anything_is_run(bench):
    done = bench.run("method=hipporag", *WITH, "evaluation.communities=[chj]", verb="check")
    assert done.code == 2 and "No metric of communities is called 'chj'" in done.err and "Did you mean chi?" in done.err
