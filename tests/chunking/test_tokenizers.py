"""Where tokens begin, by each tokenizer, and what is said when its file is not to be had."""

import importlib.metadata
from importlib.metadata import PackagePath
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from graphrag_bench import weights
from graphrag_bench.chunking import tokenizers
from graphrag_bench.chunking.tokenizers import load_tokenizer
from graphrag_bench.errors import UserError


@pytest.fixture(autouse=True)
def fresh() -> None:
    load_tokenizer.cache_clear()


def cut(name: str, text: str) -> list[str]:
    starts = [*load_tokenizer(name).starts(text), len(text)]
    return [text[a:b] for a, b in pairwise(starts)]


def test_regex_pieces() -> None:
    assert cut("regex", "The quick-brown fox, 12345 extraordinarily.\n\nnaïve 日本") == [
        "The", " quick", "-", "brown", " fox", ",", " ", "123", "45", " extraord", "inarily", ".", "\n\n", "naïve", " ",
        "日", "本",
    ]  # fmt: skip


def test_a_tokenizer_json_is_used_without_its_padding_and_cutting(tmp_path: Path) -> None:
    model = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    model.pre_tokenizer = pre_tokenizers.Whitespace()
    model.enable_truncation(2)
    model.enable_padding(length=9)
    path = tmp_path / "tokenizer.json"
    model.save(str(path))
    assert load_tokenizer(str(path)).starts("a b  a!") == [0, 2, 5, 6]


def test_minilm_comes_from_the_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Tokenizer(models.WordLevel({"a": 0}, unk_token="a")).save(str(tmp_path / "t.json"))
    asked: list[str] = []

    def resolve(name: str, *rest: Any) -> Path:
        asked.append(name)
        return tmp_path / "t.json"

    monkeypatch.setattr(weights, "resolve", resolve)
    assert load_tokenizer("minilm").starts("a") == [0]
    assert asked == ["minilm-tokenizer"]


@pytest.fixture
def tiny_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rank file of the 256 bytes and two merges, known under the name cl100k."""
    from base64 import b64encode
    from hashlib import sha256

    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abab"]
    content = b"".join(b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    path = tmp_path / "tiny.tiktoken"
    path.write_bytes(content)
    _, file, pattern = tokenizers._ENCODINGS["cl100k"]
    monkeypatch.setitem(tokenizers._ENCODINGS, "cl100k", (sha256(content).hexdigest(), file, pattern))
    return path


def test_a_rank_file_becomes_a_byte_level_tokenizer(tiny_ranks: Path) -> None:
    assert load_tokenizer(str(tiny_ranks)).starts("ababab é") == [0, 4, 6, 7, 7]


def test_cl100k_is_taken_from_an_installed_litellm(tiny_ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_ranks.rename(tiny_ranks.with_name(tokenizers._ENCODINGS["cl100k"][1]))
    entry = PackagePath(path.name)
    entry.dist = type("Dist", (), {"locate_file": lambda self, name: path})()
    monkeypatch.setattr(importlib.metadata, "files", lambda name: [entry])
    assert load_tokenizer("cl100k").starts("abc") == [0, 2]


def test_cl100k_without_its_file_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    monkeypatch.setattr(weights, "KNOWN", {})
    with pytest.raises(UserError, match=r"needs the file cl100k_base\.tiktoken.*pip install --no-deps litellm"):
        load_tokenizer("cl100k")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.json", "{}", "is not a tokenizer.json"),
        ("t.json", b"\xff", "cannot be read"),
        ("t.tiktoken", "YQ== 0\n", "is none of the rank files cl100k, o200k"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UserError, match=said):
        load_tokenizer(str(path))


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UserError, match="Take regex, minilm, cl100k, o200k, or the path"):
        load_tokenizer("gpt5")
