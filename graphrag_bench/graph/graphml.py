"""A reader of GraphML that takes nothing from outside the file: no document type, so no entities to expand or fetch."""

from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from graphrag_bench.errors import UserError


@dataclass
class Element:
    """A node or an edge: what stands in its tag, its data by name, and the line it stands on."""

    tag: dict[str, str]
    line: int
    data: dict[str, str] = field(default_factory=dict)


def read_graphml(path: Path) -> tuple[list[Element], list[Element]]:
    """Return the nodes and the edges of a GraphML file, in its order; defaults of keys are filled in.

    Raises:
        UserError: The file cannot be read, is no GraphML, or declares a document type; with its line where there is one.
    """
    reader = _Reader(path)
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except expat.ExpatError as error:
        raise UserError(
            f"{path}:{error.lineno}: not well-formed XML: {expat.ErrorString(error.code)}.", "Export the graph again."
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.", "Name a GraphML file.") from None
    return reader.nodes, reader.edges


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.nodes: list[Element] = []
        self.edges: list[Element] = []
        self._names: dict[str, str] = {}  # a key's id -> the name of what it holds
        self._defaults: dict[str, dict[str, str]] = {"node": {}, "edge": {}}
        self._open: list[Element] = []
        self._key: dict[str, str] = {}
        self._text: list[str] | None = None
        self._depth = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def _doctype(self, *_: object) -> None:
        raise UserError(
            f"{self.path}:{self.parser.CurrentLineNumber}: the file declares a document type, which GraphML never needs "
            "and which can make a reader fetch or blow up.",
            "Remove the <!DOCTYPE …> declaration, if you trust the file.",
        )

    def _start(self, name: str, tag: dict[str, str]) -> None:
        name, line = name.rpartition(":")[2], self.parser.CurrentLineNumber
        if self._depth == 0 and name != "graphml":
            raise UserError(f"{self.path}:{line}: this is <{name}>, not GraphML.", "Name a GraphML file.")
        self._depth += 1
        if name == "key":
            self._key = tag
            self._names[tag.get("id", "")] = tag.get("attr.name", tag.get("id", ""))
        elif name in ("node", "edge"):
            wanted = ("id",) if name == "node" else ("source", "target")
            if missing := [attribute for attribute in wanted if attribute not in tag]:
                raise UserError(f"{self.path}:{line}: the {name} has no {missing[0]}.", "Export the graph again.")
            element = Element(tag, line, dict(self._defaults[name]))
            (self.nodes if name == "node" else self.edges).append(element)
            self._open.append(element)
        elif name == "data":
            self._key, self._text = tag, []
        elif name == "default":
            self._text = []

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        self._depth -= 1
        if name in ("node", "edge"):
            self._open.pop()
        elif name in ("data", "default") and self._text is not None:
            text, self._text = "".join(self._text), None
            if name == "data" and self._open:
                key = self._key.get("key", "")
                self._open[-1].data[self._names.get(key, key)] = text
            elif name == "default":
                for kind in ("node", "edge"):
                    if self._key.get("for", "all") in (kind, "all"):
                        self._defaults[kind][self._names[self._key.get("id", "")]] = text
