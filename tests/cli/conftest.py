"""A command line run in this process, in a world of its own: a store, an output folder, an earlier finished run in both."""

import contextlib
import io
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import pytest

from graphrag_bench.cli import main

USUAL = ("dataset.subset=demo", "llm=scripted", "embedder=hashing", "logging.display=none", "evaluation.bootstrap=20")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@dataclass
class Outcome:
    """What a command gave."""

    code: int
    out: str
    err: str


@dataclass
class World:
    """A folder with ``store/`` and ``out/``, and the command line to use on them."""

    root: Path

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def store(self) -> Path:
        return self.root / "store"

    def run(self, *arguments: str, verb: str = "run", usual: bool = True, store: str | None = None) -> Outcome:
        """Run a verb with the usual overrides, less those that ``arguments`` set themselves."""
        if usual:
            said = {text.partition("=")[0].lstrip("+~") for text in arguments}
            said |= {"dataset.subset"} if "dataset" in said else set()
            arguments = (*(u for u in (*USUAL, f"output={self.out}") if u.partition("=")[0] not in said), *arguments)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI") and name not in _PROXIES}
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, {**kept, "GRAPHRAG_BENCH_STORE": store or str(self.store), "COLUMNS": "160"}, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                code = main([verb, *arguments])
            except SystemExit as stop:  # argparse's own
                code = stop.code
        return Outcome(code, out.getvalue(), err.getvalue())

    def write(self, name: str, content: str | bytes | None) -> Path:
        """Write a file below the world's root; None removes it."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def files(self) -> dict[str, bytes]:
        """Return every file of store and output, locks and the database's own apart."""
        found = {}
        for top in (self.store, self.out):
            for path in sorted(top.rglob("*")):
                if path.is_file() and path.suffix != ".lock" and not path.name.startswith("replies.sqlite"):
                    found[str(path.relative_to(self.root))] = path.read_bytes()
        return found

    def replies(self) -> dict[str, str]:
        """Return what the reply cache holds."""
        with contextlib.closing(sqlite3.connect(self.store / "replies.sqlite")) as database:
            return dict(database.execute("SELECT key, text FROM replies_1").fetchall())


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A world in which vanilla has been run."""
    world = World(tmp_path_factory.mktemp("finished"))
    assert world.run("method=vanilla").code == 0
    return world


@pytest.fixture
def world(finished: World, tmp_path: Path) -> World:
    """A copy of the finished world that a test may change."""
    for name in ("store", "out"):
        shutil.copytree(finished.root / name, tmp_path / name)
    return World(tmp_path)


@pytest.fixture(scope="session")
def refusing_server() -> Iterator[str]:
    """The address of a server that refuses every key."""
    body = b'{"error": {"message": "Incorrect API key provided", "type": "t", "code": null}}'

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # the client hangs up when it has met one refusal
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def dead_server() -> Iterator[str]:
    """An address where nobody listens: the port is bound, so that nobody else can."""
    import socket

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
