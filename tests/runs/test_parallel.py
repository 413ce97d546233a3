"""Two sweeps at once on one fresh store: both end well and alike, and share what they share."""

import json
from collections import Counter
from dataclasses import replace

from filelock import FileLock

METHODS = ("vanilla", "bm25", "hipporag")


def built(benches):
    """Return for each artifact how many cells say that they built it."""
    found = Counter()
    for bench in benches:
        for method in METHODS:
            keys = json.loads((bench.cell(method) / "run.json").read_text())["artifacts"]
            facts = json.loads((bench.cell(method) / "costs.json").read_text())["artifacts"]
            assert keys.keys() == facts.keys()
            for name, key in keys.items():
                found[key] += facts[name]["built_now"]
    return found


def test_two_sweeps_share_one_fresh_store(bench, tmp_path):
    class Other(type(bench)):
        @property
        def out(self):
            return self.root / "out2"

    benches = (bench, Other(bench.root))
    arguments = ("-m", f"method={','.join(METHODS)}", "llm.delay_s=0.05")
    processes = [each.start(*arguments) for each in benches]
    ended = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended

    for method in METHODS:
        assert benches[0].same(method) == benches[1].same(method)
    counts = built(benches)
    assert set(counts.values()) == {1}, counts  # each shared stage was built once, by one of the two
    assert len(counts) == len(list(bench.store.glob("*/*/manifest.json"))) == 6
    assert benches[0].unfinished() == benches[1].unfinished() == []
    for lock in bench.store.rglob("*.lock"):
        with FileLock(lock, timeout=0):
            pass
    assert bench.replies() == 32 + 12 + 3 * 12

    third = replace(bench, root=tmp_path)
    again = third.run(*arguments[:2], f"output={tmp_path / 'out3'}")
    assert again.code == 0
    assert "0 model calls made, 48 answered from the cache" in again.out  # extraction is there whole, and asks nothing


def test_two_runs_in_one_folder_leave_one_whole_result(bench, unbroken):
    processes = [bench.start("method=vanilla", "llm.delay_s=0.05") for _ in range(2)]
    ended = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended
    assert bench.same("vanilla") == unbroken.same("vanilla")
    assert bench.unfinished() == []
