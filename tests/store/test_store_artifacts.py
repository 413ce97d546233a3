"""The store: built once whoever asks, there whole or not at all, and damage is noticed, said and mended."""

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_bench.errors import UserError
from graphrag_bench.store.artifacts import Artifact, Spec, Store, canonical, digest
from graphrag_bench.store.faults import disk_faults
from graphrag_bench.store.files import write_json, write_lines, write_text

SPEC = Spec("graph", "kg", 1, {"threshold": 0.8}, {"chunks": "abc"})


async def build(folder: Path) -> dict:
    (folder / "nodes.txt").write_text("Ada\nBob\n", encoding="utf-8")
    (folder / "weights.bin").write_bytes(bytes(range(256)))
    return {"nodes": 2}


async def never(folder: Path) -> dict:
    raise AssertionError("it is in the store already")


def get(store, spec=SPEC, how=build) -> Artifact:
    return asyncio.run(store.get(spec, how))


def left(root: Path) -> list[str]:
    """Every file and folder of a store, locks apart."""
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.suffix != ".lock")


def test_it_is_built_once_and_found_again(tmp_path):
    store = Store(tmp_path)
    assert store.find(SPEC) is None
    made = get(store)
    assert (made.built, made.key, made.path, made.facts["nodes"]) == (True, SPEC.key, store.folder(SPEC), 2)
    assert {"seconds", "cpu_seconds"} <= made.facts.keys()
    assert left(tmp_path) == [
        "graph",
        f"graph/{SPEC.key}",
        *(f"graph/{SPEC.key}/{n}" for n in ("manifest.json", "nodes.txt", "weights.bin")),
    ]
    for again in (get(store, how=never), get(Store(tmp_path), how=never), Store(tmp_path).find(SPEC)):
        assert (again.built, again.path, again.facts) == (False, made.path, made.facts)
    manifest = json.loads((made.path / "manifest.json").read_text("utf-8"))
    assert manifest["spec"] == SPEC.to_json()
    assert set(manifest["files"]) == {"nodes.txt", "weights.bin"}


def test_two_tasks_at_once_build_once(tmp_path):
    said, built = [], []

    async def both():
        second_waits = asyncio.Event()

        def say(text):
            said.append(text)
            second_waits.set()

        async def slow(folder):
            built.append(folder)
            await second_waits.wait()
            return await build(folder)

        store = Store(tmp_path, say)
        return await asyncio.gather(store.get(SPEC, slow), store.get(SPEC, slow))

    one, two = asyncio.run(asyncio.wait_for(both(), 30))
    assert len(built) == 1
    assert one.path == two.path
    assert said == ["another run is building graph kg; waiting for it"]


PROCESS = """
import asyncio, sys
from pathlib import Path
from graphrag_bench.store.artifacts import Spec, Store

async def build(folder):
    print("building", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    (folder / "x.txt").write_text("x")
    return {}

made = asyncio.run(Store(Path(sys.argv[1]), lambda text: print(text, flush=True)).get(Spec("graph", "kg", 1, {}), build))
print("built" if made.built else "found", flush=True)
"""


def test_two_processes_at_once_build_once(tmp_path):
    def start():
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    with start() as one, start() as two:
        first, second = one, two
        try:
            said = {one: one.stdout.readline().strip(), two: two.stdout.readline().strip()}
            if said[two] == "building":
                first, second = two, one
            assert said == {first: "building", second: "another run is building graph kg; waiting for it"}
            first.stdin.write("\n")
            first.stdin.flush()
            assert first.stdout.readline().strip() == "built"
            assert second.stdout.readline().strip() == "found"
        finally:
            one.kill()
            two.kill()


@pytest.mark.parametrize(
    "error", [ValueError("no"), KeyboardInterrupt(), asyncio.CancelledError(), UserError("stopped")]
)
def test_a_crash_leaves_nothing_and_the_next_one_builds(tmp_path, error):
    async def crashes(folder):
        await build(folder)
        raise error

    store = Store(tmp_path)
    with pytest.raises(type(error)):
        get(store, how=crashes)
    assert left(tmp_path) == ["graph"]
    assert store.find(SPEC) is None
    assert get(store).built


def test_after_a_crash_the_one_that_waited_builds(tmp_path):
    async def both():
        second_waits = asyncio.Event()
        store = Store(tmp_path, lambda _: second_waits.set())

        async def crashes(folder):
            await second_waits.wait()
            raise ValueError("no")

        return await asyncio.gather(store.get(SPEC, crashes), store.get(SPEC, build), return_exceptions=True)

    one, two = asyncio.run(asyncio.wait_for(both(), 30))
    assert isinstance(one, ValueError)
    assert two.built


def spoil(path: Path, how: str) -> None:
    manifest = path / "manifest.json"
    if how == "changed":
        (path / "nodes.txt").write_text("Ada\nEve\n", encoding="utf-8")
    elif how == "cut":
        (path / "weights.bin").write_bytes(bytes(range(200)))
    elif how == "missing file":
        (path / "nodes.txt").unlink()
    elif how == "missing manifest":
        manifest.unlink()
    else:
        manifest.write_bytes(
            {
                "empty": b"",
                "not json": b"{",
                "not utf-8": b"\xff",
                "a list": b"[]",
                "files is a list": b'{"files": [1]}',
                "files is a number": b'{"files": 3, "spec": {}, "facts": {}}',
                "incomplete": b'{"files": {}}',
            }[how]
        )


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("changed", "nodes.txt does not match its checksum"),
        ("cut", "weights.bin does not match its checksum"),
        ("missing file", "nodes.txt is missing"),
        ("missing manifest", "its manifest is missing"),
        ("empty", "its manifest cannot be read"),
        ("not json", "its manifest cannot be read"),
        ("not utf-8", "its manifest cannot be read"),
        ("a list", "its manifest cannot be read"),
        ("files is a list", "its manifest cannot be read"),
        ("files is a number", "its manifest cannot be read"),
        ("incomplete", "its manifest is not complete"),
    ],
)
def test_damage_is_said_moved_aside_and_built_again(tmp_path, how, why):
    spoil(get(Store(tmp_path)).path, how)
    said = []
    store = Store(tmp_path, said.append)
    assert store.find(SPEC) is None
    assert said == [f"the graph artifact {SPEC.key[:8]} is damaged ({why}); it is moved aside and built again"]
    (aside,) = (tmp_path / "damaged").iterdir()
    assert aside.name.startswith(SPEC.key)
    assert (aside / "weights.bin").exists()
    again = get(store)
    assert again.built
    assert (again.path / "nodes.txt").read_text("utf-8") == "Ada\nBob\n"
    assert Store(tmp_path, said.append).find(SPEC) is not None
    assert len(said) == 1


def test_what_was_discarded_is_built_again(tmp_path):
    store = Store(tmp_path)
    store.discard(SPEC)  # nothing there: nothing to do
    made = get(store)
    store.discard(SPEC)
    assert not made.path.exists()
    assert store.find(SPEC) is None
    assert get(store).built


def fails(number):
    def call(*_, **__):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the file system is read-only"),
        (errno.EACCES, "permission was denied"),
        (errno.EDQUOT, "the disk quota is used up"),
    ],
)
def test_what_the_disk_says_becomes_a_sentence_with_a_fix(tmp_path, monkeypatch, number, says):
    async def full(folder):
        raise OSError(number, os.strerror(number))

    store = Store(tmp_path)
    with pytest.raises(UserError, match=f"Cannot write the graph artifact .*{says}") as caught:
        get(store, how=full)
    assert caught.value.fix
    assert left(tmp_path) == ["graph"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fails(number))
        with pytest.raises(UserError, match=says):
            get(store)
        with pytest.raises(UserError, match=f"Cannot write .*{says}"):
            write_text(tmp_path / "x.txt", "x")
    assert left(tmp_path) == ["graph"]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", fails(number))
        with pytest.raises(UserError, match=f"Cannot write to the artifact store .*{says}"):
            get(Store(tmp_path / "other"))
    get(store)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", fails(number))
        with pytest.raises(UserError, match=f"Cannot remove an artifact .*{says}"):
            store.discard(SPEC)


def test_a_store_that_cannot_be_read_is_a_sentence(tmp_path, monkeypatch):
    get(Store(tmp_path))
    monkeypatch.setattr(Path, "read_text", fails(errno.EACCES))
    with pytest.raises(UserError, match="Cannot read the artifact store"):
        Store(tmp_path).find(SPEC)


def test_other_errors_of_the_system_pass_as_they_are(tmp_path):
    with pytest.raises(FileNotFoundError), disk_faults("read", tmp_path):
        (tmp_path / "nowhere").read_text()


def test_a_file_in_the_place_of_the_store_is_a_sentence(tmp_path):
    (tmp_path / "store").write_text("")
    with pytest.raises(UserError, match=r"a file, not a folder|a file stands where a folder is needed"):
        get(Store(tmp_path / "store"))


# -- keys --

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 9),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=4),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=8,
)


@given(JSON)
def test_canonical_json_says_the_value_in_one_way(value):
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


@given(st.dictionaries(st.text(max_size=3), JSON, min_size=2, max_size=4), st.randoms())
def test_the_order_of_settings_does_not_count(settings, random):
    names = list(settings)
    random.shuffle(names)
    assert digest({name: settings[name] for name in names}) == digest(settings)


@given(JSON, JSON)
def test_different_settings_have_different_keys(one, other):
    same = canonical(one) == canonical(other)
    assert (Spec("graph", "kg", 1, {"x": one}).key == Spec("graph", "kg", 1, {"x": other}).key) is same
    assert (digest(one) == digest(other)) is same


def test_the_key_changes_with_every_part_and_stays_what_it_was():
    parts = {
        "kind": "graph",
        "component": "kg",
        "version": 1,
        "settings": {"threshold": 0.8},
        "inputs": {"chunks": "abc"},
    }
    assert Spec(**parts) == SPEC
    changes = [
        ("kind", "vectors"),
        ("component", "kg2"),
        ("version", 2),
        ("settings", {"threshold": 0.9}),
        ("settings", {}),
        ("settings", {"threshold": 0.8, "top_k": None}),
        ("inputs", {"chunks": "abd"}),
        ("inputs", {"chunk": "abc"}),
        ("inputs", {}),
    ]
    keys = [Spec(**{**parts, name: value}).key for name, value in changes]
    assert len({SPEC.key, *keys}) == len(changes) + 1
    # written out: a change of how keys are made would throw every store away
    assert canonical({"b": [1, 0.5, None, True], "a": "Straße"}) == '{"a":"Straße","b":[1,0.5,null,true]}'
    assert (
        SPEC.key
        == digest(
            {
                "component": "kg",
                "inputs": {"chunks": "abc"},
                "kind": "graph",
                "settings": {"threshold": 0.8},
                "version": 1,
            }
        )[:32]
    )
    assert SPEC.key == "80f73b29f10bc3e8b8bc35fc4c14b403"


# -- whole-file writes --


def test_a_file_is_there_whole_or_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "a.json"
    write_json(path, {"b": 1, "a": "Straße"})
    assert path.read_text("utf-8") == '{\n  "b": 1,\n  "a": "Straße"\n}\n'
    write_lines(tmp_path / "rows.jsonl", [{"a": "é"}, {"a": 2}])
    assert (tmp_path / "rows.jsonl").read_bytes() == '{"a": "é"}\n{"a": 2}\n'.encode()
    monkeypatch.setattr(os, "fsync", fails(errno.ENOSPC))
    with pytest.raises(UserError):
        write_text(path, "other")
    assert path.read_text("utf-8").startswith('{\n  "b"')
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]
