"""A scripted HTTP server on the loopback interface, a clock that only moves when told, and short ways to ask."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from graphrag_bench.llm.base import Message, Request

NAMES = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
    "additionalProperties": False,
}


class Server:
    """Answers each call with the next of its ``answers``, the last for ever: (status, headers, body) or ``hang``."""

    hang = "hang"

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.seen: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.released = threading.Event()
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer._lock:
                    outer.seen.append(json.loads(body))
                    outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                    answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                if answer == outer.hang:
                    outer.released.wait(30)
                    self.close_connection = True
                    return
                status, headers, content = answer
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                usual = {"Content-Type": "application/json", "Content-Length": str(len(raw))}
                for name, value in {**usual, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *_: object) -> None:
                """A client that hangs up is part of the tests."""

        self._http = Quiet(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()


def ok(text: str, finish: str = "stop", prompt: int = 10, completion: int = 5) -> tuple[int, dict[str, str], Any]:
    return 200, {}, {
        "id": "c", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


def status(code: int, message: str = "no", headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, str], Any]:
    return code, dict(headers or {}), {"error": {"message": message, "type": "t", "code": None}}


class Clock:
    """Time that passes only where somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def ask(text: str = "Who?", *, schema: Mapping[str, Any] | None = None, max_tokens: int = 50, subject: str = "q1",
        stage: str = "answer", purpose: str = "direct", sample: int = 0) -> Request:
    return Request((Message("user", text),), max_tokens, stage, purpose, subject, schema, sample)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = Server()
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tools() -> Any:
    """The helpers above, since a test module cannot import its conftest by a stable name."""

    class Tools:
        pass

    found = Tools()
    for name, value in {"ok": ok, "status": status, "ask": ask, "NAMES": NAMES, "hang": Server.hang}.items():
        setattr(found, name, value)
    return found


Sleep = Callable[[float], Awaitable[None]]
