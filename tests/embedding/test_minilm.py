from types import SimpleNamespace

import numpy as np
import pytest

from graphrag_bench import weights
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.minilm import MiniLMEmbedder
from graphrag_bench.errors import UserError

CLS, SEP = 0, 1


class FakeTokenizer:
    """A word is a token, its id the number it is written as (2…383)."""

    def encode_batch(self, texts, *, add_special_tokens):
        assert not add_special_tokens
        return [SimpleNamespace(ids=[int(word) for word in text.split()]) for text in texts]

    def token_to_id(self, token):
        return {"[CLS]": CLS, "[SEP]": SEP}[token]


class FakeSession:
    """A token's state is the one-hot vector of its id, so that a mean counts tokens."""

    def __init__(self):
        self.shapes = []

    def run(self, _, feed):
        self.shapes.append(feed["input_ids"].shape)
        assert feed["attention_mask"].all()
        return [np.eye(384, dtype=np.float32)[feed["input_ids"]]]


def make(**settings):
    embedder = MiniLMEmbedder(**settings)
    vars(embedder).update(_tokenizer=FakeTokenizer(), _session=FakeSession())
    return embedder


def unit(*ids):
    row = np.bincount(ids, minlength=384)
    return row / np.linalg.norm(row)


def test_mean_pooling_counts_the_special_tokens_and_normalises():
    row = make().embed(["5 5 7"])[0]
    assert row.dtype == np.float32
    np.testing.assert_allclose(row, unit(CLS, 5, 5, 7, SEP), atol=1e-7)


def test_order_is_restored():
    texts = ["9", "2 3 4", "8 8", "5", "6 7 8"]
    rows = make(batch_tokens=6).embed(texts)
    for text, row in zip(texts, rows, strict=True):
        np.testing.assert_allclose(row, unit(CLS, *map(int, text.split()), SEP), atol=1e-7)


def test_batches_hold_one_length_and_keep_to_the_token_budget():
    embedder = make(batch_tokens=8, threads=1)
    embedder.embed(["2", "3 4", "5", "6", "7 8 9 10 11 12 13 14"])
    assert embedder._session.shapes == [(1, 10), (1, 4), (2, 3), (1, 3)]


def test_a_long_text_is_the_mean_of_its_windows():
    # A window of 6 leaves 4 words, stepping by 3: words 0-3 and, to end with the text, 2-5.
    embedder = make(max_tokens=6)
    first, second = unit(CLS, 10, 11, 12, 13, SEP), unit(CLS, 12, 13, 14, 15, SEP)
    mean = (first + second) / np.linalg.norm(first + second)
    rows = embedder.embed(["20", "10 11 12 13 14 15"])
    np.testing.assert_allclose(rows[1], mean, atol=1e-7)
    np.testing.assert_allclose(rows[0], unit(CLS, 20, SEP), atol=1e-7)
    assert embedder.long_texts(["1 2 3 4", "1 2 3 4 5"]) == 1


def test_truncate_reads_the_first_window():
    row = make(max_tokens=6, long_text="truncate").embed(["10 11 12 13 14 15"])[0]
    np.testing.assert_allclose(row, unit(CLS, 10, 11, 12, 13, SEP), atol=1e-7)


def test_no_text_is_an_empty_array():
    assert make().embed([]).shape == (0, 384)


def test_identity_has_what_changes_a_vector_and_not_what_does_not():
    plain = make()
    assert plain.identity == make(threads=7, batch_tokens=9).identity
    assert plain.identity["model"] == weights.KNOWN["minilm-int8-onnx"].sha256
    for other in (make(max_tokens=128), make(long_text="truncate")):
        assert other.identity != plain.identity
    assert isinstance(plain, Embedder)


@pytest.mark.parametrize("settings", [{"max_tokens": 2}, {"max_tokens": 513}, {"long_text": "middle"}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UserError):
        MiniLMEmbedder(**settings)


def test_another_architecture_is_refused():
    embedder = make()
    vars(embedder)["_session"] = SimpleNamespace(run=lambda *_: [np.zeros((1, 3, 768))])
    with pytest.raises(UserError, match="384"):
        embedder.embed(["5"])


def test_a_file_that_is_no_model_is_named(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "not.onnx").write_text("hello")
    embedder = MiniLMEmbedder(model=str(tmp_path / "not.onnx"))
    vars(embedder)["_tokenizer"] = FakeTokenizer()
    with pytest.raises(UserError, match=r"not\.onnx is not a model"):
        embedder.embed(["5"])


needs_weights = pytest.mark.skipif(
    not (weights.is_present("minilm-int8-onnx") and weights.is_present("minilm-tokenizer")),
    reason="the weights of minilm are not in the store",
)


@needs_weights
def test_a_text_has_the_same_bytes_in_every_company():
    pytest.importorskip("onnxruntime")
    words = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "near", "a", "river", "noon"]
    texts = [" ".join(words[: n % 13 + 1]) + f" {n}" for n in range(40)] + [" ".join(words) * 40]
    embedder = MiniLMEmbedder(threads=2)
    rows = embedder.embed(texts)
    assert all((embedder.embed([text])[0] == row).all() for text, row in zip(texts, rows, strict=True))
    assert (MiniLMEmbedder(threads=1, batch_tokens=4096).embed(texts[::-1])[::-1] == rows).all()


@needs_weights
def test_meaning_beats_spelling():
    pytest.importorskip("onnxruntime")
    cat, kitten, bank = MiniLMEmbedder().embed(["A cat sleeps.", "The kitten is napping.", "A bank lends money."])
    assert cat @ kitten > 0.5 > cat @ bank
