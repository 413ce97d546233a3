import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from omegaconf import OmegaConf

from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.hashing import HashingEmbedder
from graphrag_bench.embedding.sentence_transformers import SentenceTransformersEmbedder
from graphrag_bench.embedding.wordllama import WordLlamaEmbedder
from graphrag_bench.errors import UserError
from graphrag_bench.registry import REGISTRY

CONF = Path(__file__).parents[2] / "conf" / "embedder"


def test_hashing_is_deterministic_unit_and_independent_of_company():
    embedder = HashingEmbedder()
    texts = ["Marie Curie", "marie  curie", "x", "漢字", "Albert Einstein"]
    rows = embedder.embed(texts)
    assert rows.shape == (5, 256)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert (rows[0] == rows[1]).all()
    assert all((embedder.embed([text])[0] == row).all() for text, row in zip(texts, rows, strict=True))
    assert isinstance(embedder, Embedder)


def test_hashing_finds_shared_spelling():
    a, b, c = HashingEmbedder().embed(["University of Copenhagen", "Copenhagen University", "Mathematical Physics"])
    assert a @ b > 0.5 > a @ c


def test_hashing_gives_these_numbers_on_every_platform():
    row = HashingEmbedder(dim=8, ngram=2).embed(["abcabd"])[0]
    np.testing.assert_allclose(row, np.array([0, -1, 2, 0, -1, 0, 0, 1]) / np.sqrt(7), atol=1e-7)


def test_hashing_refuses_no_text_and_no_dimension():
    with pytest.raises(UserError, match="empty"):
        HashingEmbedder().embed([""])
    with pytest.raises(UserError):
        HashingEmbedder(dim=0)
    assert HashingEmbedder(dim=4).embed([]).shape == (0, 4)
    assert HashingEmbedder(dim=4).identity != HashingEmbedder().identity


def test_wordllama_equals_its_package_and_does_not_depend_on_company():
    pytest.importorskip("safetensors")
    try:
        embedder = WordLlamaEmbedder()
    except UserError:
        pytest.skip("wordllama is not installed")
    texts = ["a cat sleeps", "the kitten is napping on the sofa", "a bank lends money"]
    rows = embedder.embed(texts)
    assert all((embedder.embed([text])[0] == row).all() for text, row in zip(texts, rows, strict=True))
    assert rows[0] @ rows[1] > rows[0] @ rows[2]
    assert embedder.long_texts(["word " * 10_000]) == 0
    encodings = embedder._tokenizer.encode_batch(texts, add_special_tokens=False)
    mean = embedder._table[encodings[0].ids].mean(axis=0)
    np.testing.assert_allclose(rows[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UserError, match=r"graphrag-bench\[sentence-transformers\]"):
        SentenceTransformersEmbedder()


class FakeTransformer:
    """Vectors that say which piece was read; a word is a token and two are special."""

    max_seq_length = 6

    def __init__(self, model, revision=None, device=None):
        self.tokenizer = self
        self.read = []

    def encode(self, texts, *, add_special_tokens=None, **_):
        if add_special_tokens is not None:
            return [0, *texts.split(), 1] if add_special_tokens else texts.split()
        self.read += texts
        return np.array([[len(text), 1.0, 0.0] for text in texts], dtype=np.float32)


def test_sentence_transformers_puts_prompts_before_and_cuts_what_is_long(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=FakeTransformer))
    embedder = SentenceTransformersEmbedder(model="m", query_prompt="query: ")
    assert embedder.dim == 3
    embedder._model.read.clear()
    embedder.embed(["who"], "query")
    embedder.embed(["a b c d"], "passage")
    assert embedder._model.read == ["query: who", "a b c d"]
    embedder._model.read.clear()
    assert embedder.embed(["aa bb cc dd ee ff gg hh", "x"]).shape == (2, 3)
    assert len(embedder._model.read) == 4
    assert embedder.long_texts(["a b c d", "a b c d e f"]) == 1
    assert embedder.identity["max_tokens"] == 6
    with pytest.raises(UserError, match="at most 6"):
        SentenceTransformersEmbedder(model="m", max_tokens=7)


def test_importing_every_backend_is_light():
    code = (
        "import sys; from graphrag_bench.registry import REGISTRY; names = [c.name for c in REGISTRY.all('embedder')];"
        "assert {'minilm', 'wordllama', 'openai', 'sentence_transformers', 'hashing'} <= set(names), names;"
        "heavy = {'onnxruntime', 'openai', 'wordllama', 'sentence_transformers', 'tokenizers', 'torch'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("page", sorted(CONF.glob("*.yaml")), ids=lambda page: page.stem)
def test_a_page_of_the_configuration_names_its_backend_and_settings_it_has(page, monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    settings = OmegaConf.to_container(OmegaConf.load(page), resolve=True)
    backend = settings.pop("backend")
    assert backend == page.stem
    component = REGISTRY.get("embedder", backend)
    # What the page says is the default: a user who writes no page gets the same vectors.
    defaults = {name: setting.default for name, setting in component.settings.items()}
    assert settings == {name: defaults[name] for name in settings}
