"""How wide text is in a drawing, without a font at hand: on the wide side, so that what is measured fits any fallback."""

import unicodedata

_NARROW = set("ijlft.,:;'|!()[]{}`\"·-/ ")
_WIDE = set("mwMWQO@%&—…")


def width(text: str, size: float) -> float:
    """Return the width of a text in px, at a font size in px; East Asian letters are a full square."""
    total = 0.0
    for char in text:
        if unicodedata.combining(char):
            continue
        if unicodedata.east_asian_width(char) in "WF":
            total += 1.0
        elif char in _NARROW:
            total += 0.38
        elif char in _WIDE:
            total += 0.95
        else:
            total += 0.71 if char.isupper() else 0.62
    return total * size


def clipped(text: str, size: float, room: float) -> str:
    """Return a text that fits the room, with an ellipsis where something was cut off."""
    if width(text, size) <= room:
        return text
    while text and width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def packed(parts: list[str], size: float, room: float, gap: float) -> list[list[str]]:
    """Return the parts in lines of the given room, in order; a part alone in its line may be wider."""
    lines: list[list[str]] = []
    used = 0.0
    for part in parts:
        need = width(part, size) + gap
        if lines and used + need <= room:
            lines[-1].append(part)
            used += need
        else:
            lines.append([part])
            used = need
    return lines
