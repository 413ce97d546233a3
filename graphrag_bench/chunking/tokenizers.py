"""Tokenizers that say where in the text each token begins, so that windows are slices of the original.

``regex`` needs nothing and is the default; a ``tokenizer.json`` or ``.tiktoken`` file gives a model's own tokens.
"""

import base64
import importlib.metadata
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from graphrag_bench.errors import UserError

# Scripts written without spaces, where a byte-pair encoder comes to about a token a character: Thai, Lao, Myanmar,
# Khmer, kana, Han, Hangul.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECE = 8  # letters; see RegexTokenizer
_PIECES = re.compile(
    rf"(?: ?[^\W\d_{_UNSPACED}]{{1,{_PIECE}}}|[{_UNSPACED}]|\d{{1,3}}| ?[!-/:-@\[-`{{-~]{{1,16}}"
    r"|\s*[\r\n]+|\s+(?!\S)|\s|.)[\u0300-\u036f\u200d\ufe0e\ufe0f]*"  # marks stay with what they modify
)

# The split patterns and content hashes of OpenAI's two public encodings.
_CASE = r"[^\r\n\p{L}\p{N}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_CL100K = rf"{_SUFFIX}|{_CASE}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*{_TAIL}"
_O200K = (
    rf"{_CASE}{_UPPER}*{_LOWER}+{_SUFFIX}?|{_CASE}{_UPPER}+{_LOWER}*{_SUFFIX}?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*{_TAIL}"
)
_ENCODINGS: dict[str, tuple[str, str, str]] = {  # name: SHA-256 of the rank file, its name in litellm, split pattern
    "cl100k": ("223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
               "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", _CL100K),
    "o200k": ("446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
              "fb374d419588a4632f3f557e76b4b70aebbca790", _O200K),
}  # fmt: skip


class Tokenizer(Protocol):
    """Cuts a text into tokens."""

    def starts(self, text: str) -> Sequence[int]:
        """Return the offset (in characters) at which each token begins, rising.

        Tokens that share a character, as byte-level ones may, begin at the same offset.
        """


class RegexTokenizer:
    """Words, numbers and punctuation by one regular expression: quick, offline, the same everywhere.

    As in GPT's own pre-tokenizers, a word takes the space before it, digits come in threes, marks in runs. Unlike them,
    a word is cut after eight letters, because a long or foreign word is several tokens to every byte-pair encoder. With
    that, on fourteen public English corpora (Wikipedia, news, books, transcripts, chat logs; 6.0 million tokens) its
    counts are 1.00 times cl100k's over all (0.94 to 1.09 by corpus), 1.02 times o200k's (0.97 to 1.09) and 1.05 times
    MiniLM's (1.02 to 1.09). They are an approximation: where a paper's very chunks are wanted, take its tokenizer.
    """

    def starts(self, text: str) -> Sequence[int]:
        """Return where each piece begins."""
        return [match.start() for match in _PIECES.finditer(text)]


class FileTokenizer:
    """A tokenizer of the ``tokenizers`` library."""

    def __init__(self, model: Any) -> None:
        # A file may ask for padding or cutting to the model's window; both would falsify offsets.
        model.no_padding()
        model.no_truncation()
        self._model = model

    def starts(self, text: str) -> Sequence[int]:
        """Return where each token begins."""
        return [start for start, _ in self._model.encode(text, add_special_tokens=False).offsets]


@lru_cache(maxsize=8)
def load_tokenizer(name: str) -> Tokenizer:
    """Return a tokenizer.

    Args:
        name: ``regex``; ``minilm``, all-MiniLM-L6-v2's; ``cl100k`` or ``o200k``, the papers', whose files are taken
            from an installed litellm; or the path of a ``tokenizer.json`` or of one of these two's ``.tiktoken`` files.

    Raises:
        UserError: The name is unknown, or its file is absent or broken.
    """
    if name == "regex":
        return RegexTokenizer()
    if name == "minilm":
        from graphrag_bench import weights

        return _from_json(weights.resolve("minilm-tokenizer"))
    if name in _ENCODINGS:
        return _from_ranks(_encoding_file(name))
    path = Path(name).expanduser()
    if not path.is_file():
        raise UserError(f"The tokenizer {name!r} is neither known nor a file.",
                        f"Take regex, minilm, {', '.join(_ENCODINGS)}, or the path of a tokenizer.json.")
    return _from_ranks(path) if path.suffix == ".tiktoken" else _from_json(path)


def _from_json(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer as Model

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The tokenizer {path} cannot be read: {error}.",
                        "Give the path of a tokenizer.json.") from error
    try:
        model = Model.from_str(text)
    # The library raises a bare Exception for every fault of the file, so nothing narrower can be caught.
    except Exception as error:
        raise UserError(f"{path} is not a tokenizer.json: {error}.", "Fetch it again from the model's page.") from error
    return FileTokenizer(model)


def _encoding_file(name: str) -> Path:
    """Return the rank file of an encoding: from an installed litellm, whose wheel carries it, or from the weights."""
    from graphrag_bench import weights

    try:
        held = importlib.metadata.files("litellm") or []
    except importlib.metadata.PackageNotFoundError:
        held = []
    for entry in held:
        if entry.name == _ENCODINGS[name][1]:
            return Path(str(entry.locate()))
    known = f"{name}-base"
    if known in weights.KNOWN:
        return weights.resolve(known)
    raise UserError(f"The tokenizer {name} needs the file {name}_base.tiktoken, which is not here.",
                    "Run `pip install --no-deps litellm` (its wheel holds it), give the path of the file as "
                    "`tokenizer`, or take the tokenizer `regex`.")


def _from_ranks(path: Path) -> Tokenizer:
    """Turn a rank file (base64 token, space, rank, a line) into a byte-level tokenizer with the same tokens."""
    from tokenizers import Regex, models, pre_tokenizers
    from tokenizers import Tokenizer as Model

    content = path.read_bytes()
    digest = sha256(content).hexdigest()
    pattern = next((found for known, _, found in _ENCODINGS.values() if known == digest), None)
    if pattern is None:
        raise UserError(f"{path} is none of the rank files {', '.join(_ENCODINGS)} (by its SHA-256).",
                        "Fetch it again, or give a tokenizer.json.")
    ranks = {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, content.splitlines())}
    spell = _byte_alphabet()
    letters = {token: "".join(spell[byte] for byte in token) for token in ranks}
    # A merge is possible wherever two tokens join to a third; the lowest rank goes first. Parts in the order of their
    # own ranks, as the encoder itself would meet them.
    merges = [
        (letters[left], letters[right])
        for token in sorted(ranks, key=ranks.__getitem__) if len(token) > 1
        for left, right in sorted(
            ((token[:at], token[at:]) for at in range(1, len(token)) if token[:at] in ranks and token[at:] in ranks),
            key=lambda pair: (ranks[pair[0]], ranks[pair[1]]),
        )
    ]  # fmt: skip
    model = Model(models.BPE({letters[token]: rank for token, rank in ranks.items()}, merges, ignore_merges=True))
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    spelled = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.pre_tokenizer = pre_tokenizers.Sequence([split, spelled])
    return FileTokenizer(model)


def _byte_alphabet() -> dict[int, str]:
    """Return the printable character by which byte-level tokenizers spell each byte (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
