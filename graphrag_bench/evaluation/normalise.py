"""How texts are made comparable before an answer is scored (METHODS §3.1, the SQuAD order)."""

import re
import string
import unicodedata

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ASCII = str.maketrans("", "", string.punctuation)
# Scripts written without spaces: without this a Chinese or Japanese answer would be one single token.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")


def normalise(text: str) -> str:
    """Lowercase, delete punctuation, replace the articles by a space, collapse spaces.

    On ASCII text this is exactly SQuAD's ``normalize_answer`` (Rajpurkar et al., 2016, evaluation script v1.1). Beyond
    ASCII the same idea is carried on: compatibility forms are unified (NFKC: full-width letters, ligatures), case is
    folded instead of lowered, and every Unicode punctuation mark is deleted (“ ” ’ – 。), not only the ASCII ones.
    """
    if text.isascii():
        text = text.lower().translate(_ASCII)
    else:
        folded = unicodedata.normalize("NFKC", text).casefold().translate(_ASCII)
        kept = "".join(c for c in folded if not unicodedata.category(c).startswith("P"))
        text = unicodedata.normalize("NFKC", kept)  # again: folding and deleting can bring letter and accent together
    return " ".join(_ARTICLES.sub(" ", text).split())


def tokens(normalised: str) -> list[str]:
    """Split a normalised text at spaces; each Chinese or Japanese character is a token of its own."""
    return _UNSPACED.sub(r" \g<0> ", normalised).split()


def comparable(prediction: str, gold: str) -> tuple[str, str]:
    """Normalise both; where nothing is left of the gold ("A", "The The", "!!!"), only fold case and spaces on both.

    An empty gold would be contained in every prediction, so an option letter "A" would always count as found.
    """
    if wanted := normalise(gold):
        return normalise(prediction), wanted
    return " ".join(prediction.casefold().split()), " ".join(gold.casefold().split())
