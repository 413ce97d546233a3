"""Runs in this process and in processes of their own, and a server that speaks the OpenAI protocol as badly as asked."""

import contextlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from graphrag_bench.cli import main
from graphrag_bench.llm.backends._instances import instance, short_text

USUAL = ("dataset.subset=demo", "llm=scripted", "embedder=hashing", "logging.display=plain", "evaluation.bootstrap=20")
SAME_BYTES = ("answers.jsonl", "metrics.json", "per_question.jsonl", "contexts.jsonl")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
_DEADLINE_S = 60.0


@dataclass
class Outcome:
    """What a command gave."""

    code: int
    out: str
    err: str


@dataclass
class Bench:
    """A store and an output folder, and the command line to use on them."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def store(self) -> Path:
        return self.root / "store"

    def cell(self, method: str, rest: str = "sample-demo") -> Path:
        return self.out / method / rest

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI") and name not in _PROXIES}
        return {**kept, "GRAPHRAG_BENCH_STORE": str(self.store), **self.env}

    def _arguments(self, arguments: tuple[str, ...]) -> list[str]:
        said = {text.partition("=")[0] for text in arguments}
        said |= {"dataset.subset"} if "dataset" in said else set()
        return [*(u for u in (*USUAL, f"output={self.out}") if u.partition("=")[0] not in said), *arguments]

    def run(self, *arguments: str, verb: str = "run") -> Outcome:
        """Run a verb in this process, with the usual overrides unless the verb takes none."""
        out, err = io.StringIO(), io.StringIO()
        full = self._arguments(arguments) if verb in ("run", "check", "plan") else list(arguments)
        with (
            mock.patch.dict(os.environ, self._environment(), clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main([verb, *full])
        return Outcome(code, out.getvalue(), err.getvalue())

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a run in a process of its own."""
        command = [sys.executable, "-m", "graphrag_bench", "run", *self._arguments(arguments)]
        return subprocess.Popen(
            command,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # tests that are themselves run in the background inherit an ignored SIGINT, which Python then leaves ignored
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def replies(self) -> int:
        """Return how many replies the cache holds; 0 before there is one."""
        path = self.store / "replies.sqlite"
        if not path.exists():
            return 0
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
            try:
                return int(database.execute("SELECT count(*) FROM replies_1").fetchone()[0])
            except sqlite3.OperationalError:  # its tables are being made
                return 0

    def lines(self, path: Path) -> int:
        return path.read_bytes().count(b"\n") if path.exists() else 0

    def rows(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def same(self, method: str) -> dict[str, bytes]:
        """Return the files of a cell that must be the same bytes however the run came to its end."""
        return {name: (self.cell(method) / name).read_bytes() for name in SAME_BYTES}

    def unfinished(self) -> list[Path]:
        """Return what a writer left aside."""
        return [path for top in (self.store, self.out) for path in top.rglob(".*")]


def until(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait for a condition while a process works; fail when it ends before or a minute has passed."""
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        assert process.poll() is None, ("the run ended before the condition held", process.communicate())
        assert time.monotonic() < deadline
        time.sleep(0.002)  # between two looks at the condition; nothing relies on its length


@pytest.fixture
def wait_until() -> Callable[..., None]:
    return until


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A run of vanilla and HippoRAG that nothing interrupted."""
    made = Bench(tmp_path_factory.mktemp("unbroken"))
    assert made.run("-m", "method=vanilla,hipporag").code == 0
    return made


Reply = tuple[int, dict[str, str], bytes]


class Server:
    """Answers every prompt well, by rule, unless ``turns`` or ``fault`` say otherwise.

    ``turns`` are used up first, one a request; then ``fault(prompt)`` is asked. Either gives a kind of fault by its name,
    or "" for a good reply.
    """

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.fault: Callable[[str], str] = lambda prompt: ""
        self.seen: list[str] = []
        self.keys: set[str] = set()
        self.released = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked = next(message["content"] for message in body["messages"] if message["role"] == "user")
                prompt = "\n".join(message["content"] for message in body["messages"])
                with outer._lock:
                    outer.seen.append(prompt)
                    outer.keys.add(self.headers.get("Authorization", ""))
                    kind = outer.turns.pop(0) if outer.turns else outer.fault(prompt)
                if kind in ("hang", "late"):
                    outer.released.wait(30)
                if kind in ("hang", "hang up"):
                    self.close_connection = True
                    return
                schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
                code, headers, content = outer._reply(kind, schema, asked, self.headers.get("Authorization", ""))
                self.send_response(code)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A client that hangs up is part of the tests."""

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def _reply(self, kind: str, schema: Any, asked: str, key: str) -> Reply:
        good = short_text(asked, "0.0") if schema is None else json.dumps(instance(schema, asked, "0.0"))
        said = {"error": {"message": f"no, {key}", "type": "t", "code": None}}
        if kind == "rate limit":
            return 429, {"Retry-After": "0"}, json.dumps(said).encode()
        if kind == "server error":
            return 500, {"Retry-After": "0"}, json.dumps(said).encode()
        if kind == "bad request":
            return 400, {}, json.dumps(said).encode()
        if kind == "too long":
            said["error"]["code"] = "context_length_exceeded"
            return 400, {}, json.dumps(said).encode()
        if kind == "error body":
            return 200, {}, json.dumps(said).encode()
        text = {"wrong schema": '{"names": 3}', "no JSON": "I would rather not.", "empty": ""}.get(kind, good)
        body = json.dumps({
            "id": "c", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }).encode()
        return 200, {}, body[: len(body) // 2] if kind == "cut-off body" else body

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call be sent again at once where it would wait for a second and more."""
    from graphrag_bench import session
    from graphrag_bench.llm.service import Chat

    monkeypatch.setattr(session, "Chat", lambda *args, **settings: Chat(*args, first_wait=0.0, **settings))
