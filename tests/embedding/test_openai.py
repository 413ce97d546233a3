import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from graphrag_bench.embedding.openai_server import OpenAIEmbedder
from graphrag_bench.errors import UserError

KEY = "sk-very-secret-4711"


def vector(text):
    return np.array([len(text), 1.0, ord(text[0])], dtype="<f4")


def good(body, encode=lambda v: base64.b64encode(v.tobytes()).decode(), shuffle=False):
    data = [{"index": i, "embedding": encode(vector(text))} for i, text in enumerate(body["input"])]
    return 200, {}, {"data": data[::-1] if shuffle else data}


@pytest.fixture
def server(monkeypatch):
    """A server that plays a script of replies (functions of the request's body), then answers well."""
    monkeypatch.setenv("TEST_KEY", KEY)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                playing.requests.append((body, self.headers["Authorization"], self.client_address))
                reply = playing.script.pop(0) if playing.script else good
            status, headers, content = reply(body)
            raw = content if isinstance(content, bytes) else json.dumps(content).encode()
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": len(raw), **headers}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(raw)
            except OSError:
                return  # the client gave up waiting, as one test wants

        def log_message(self, *_):
            pass

    lock = threading.Lock()
    playing = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    playing.daemon_threads = True
    playing.requests, playing.script = [], []
    threading.Thread(target=playing.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    yield playing
    playing.shutdown()
    playing.server_close()


@pytest.fixture
def make(server):
    made = []

    def build(**settings):
        settings = {"model": "m", "dimensions": 3, "api_key_env": "TEST_KEY", "concurrency": 1, **settings}
        embedder = OpenAIEmbedder(base_url=f"http://127.0.0.1:{server.server_port}/v1", **settings)
        embedder.waited = []
        embedder.sleep = embedder.waited.append
        made.append(embedder)
        return embedder

    yield build
    for embedder in made:
        embedder.close()


def fail(status, headers=None, message="no"):
    return lambda body: (status, headers or {}, {"error": {"message": message}})


def unit(text):
    return vector(text) / np.linalg.norm(vector(text))


@pytest.mark.parametrize(
    "reply", [good, lambda b: good(b, encode=lambda v: v.tolist()), lambda b: good(b, shuffle=True)]
)
def test_vectors_in_base64_or_lists_in_any_order(server, make, reply):
    server.script[:] = [reply]
    rows = make().embed(["abc", "z"])
    np.testing.assert_allclose(rows, [unit("abc"), unit("z")], atol=1e-6)
    body, authorization, _ = server.requests[0]
    assert body == {"model": "m", "input": ["abc", "z"], "encoding_format": "base64"}
    assert authorization == f"Bearer {KEY}"


def test_batches_prompts_and_one_connection(server, make):
    embedder = make(batch_size=2, query_prompt="q: ", shorten=True)
    assert embedder.embed(["a", "b", "c", "d", "e"], "query").shape == (5, 3)
    assert [body["input"] for body, _, _ in server.requests] == [["q: a", "q: b"], ["q: c", "q: d"], ["q: e"]]
    assert all(body["dimensions"] == 3 for body, _, _ in server.requests)
    assert len({address for _, _, address in server.requests}) == 1
    assert embedder.embed([]).shape == (0, 3)


def test_concurrent_requests_keep_the_order(make):
    texts = [chr(97 + n % 26) * (n + 1) for n in range(30)]
    rows = make(batch_size=3, concurrency=4).embed(texts)
    np.testing.assert_allclose(rows, [unit(text) for text in texts], atol=1e-6)


def test_long_texts_are_cut_and_averaged(server, make):
    embedder = make(max_tokens=2)
    row = embedder.embed(["aaaaaaaab"])[0]
    pieces = server.requests[0][0]["input"]
    assert pieces == ["aaaaaa", "aaaaab"]
    mean = unit(pieces[0]) + unit(pieces[1])
    np.testing.assert_allclose(row, mean / np.linalg.norm(mean), atol=1e-6)
    assert embedder.long_texts(["a" * 6, "a" * 7]) == 1


def test_retries_wait_as_told_and_else_twice_as_long_each_time(server, make):
    server.script[:] = [fail(429, {"Retry-After": "7"}), fail(500), fail(503, {"Retry-After": "soon"})]
    embedder = make()
    assert embedder.embed(["a"]).shape == (1, 3)
    assert embedder.waited == [7.0, 1.0, 2.0]


def test_retries_end(server, make):
    server.script[:] = [fail(500)] * 3
    embedder = make(retries=2)
    with pytest.raises(UserError, match=r"overloaded or broken \(500\): no after 2 retries"):
        embedder.embed(["a"])
    assert embedder.waited == [0.5, 1.0]


def test_a_wait_of_an_hour_is_not_waited(server, make):
    server.script[:] = [fail(429, {"Retry-After": "3600"})]
    embedder = make()
    with pytest.raises(UserError, match="429"):
        embedder.embed(["a"])
    assert embedder.waited == []


def test_a_slow_server_is_asked_again(server, make):
    release = threading.Event()

    def slow(body):
        release.wait(5)
        return good(body)

    server.script[:] = [slow]
    embedder = make(timeout=0.15)
    start = time.perf_counter()
    assert embedder.embed(["a"]).shape == (1, 3)
    release.set()
    assert embedder.waited == [0.5] and time.perf_counter() - start < 4


@pytest.mark.parametrize(("reply", "says"), [
    (fail(400, message="input too long"), r"refused the request \(400\): input too long"),
    (fail(401), "refused the key"),
    (fail(404), "does not know the model"),
    (fail(200, message="model crashed"), "error instead of vectors: model crashed"),
    (lambda b: (200, {}, {"object": "list"}), "error instead of vectors"),
    (lambda b: (200, {}, b"<html>hello</html>"), "not JSON"),
    (lambda b: (200, {}, {"data": []}), "0 vectors for 1 text"),
    (lambda b: (200, {}, {"data": [{"index": 4, "embedding": [1, 2, 3]}]}), "numbered"),
    (lambda b: (200, {}, {"data": [{"index": 0, "embedding": [1, 2]}]}), "2 numbers where 3"),
    (lambda b: (200, {}, {"data": [{"index": 0, "embedding": "%%%"}]}), "neither base64"),
    (lambda b: (200, {}, {"data": [{"index": 0, "embedding": [1, None, 2]}]}), "not finite"),
    (lambda b: (200, {}, {"data": [{"index": 0, "embedding": [0, 0, 0]}]}), "zeros only"),
    (lambda b: (429, {}, {"error": {"message": "pay", "code": "insufficient_quota"}}), "quota is spent"),
])
def test_what_cannot_be_mended_is_said_at_once(server, make, reply, says):
    server.script[:] = [reply]
    embedder = make()
    with pytest.raises(UserError, match=says):
        embedder.embed(["a"])
    assert embedder.waited == []


def test_a_server_that_is_not_there(make, server):
    embedder = make(retries=1)
    embedder._base_url = "http://user:hunter2@127.0.0.1:9/v1"
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9 .* cannot be reached after 1 retry") as caught:
        embedder.embed(["a"])
    assert "hunter2" not in str(caught.value)


def test_the_key_is_shown_nowhere(server, make):
    server.script[:] = [fail(401, message=f"Incorrect API key provided: {KEY}")]
    embedder = make()
    with pytest.raises(UserError) as caught:
        embedder.embed(["a"])
    error = caught.value
    assert error.__suppress_context__
    for shown in (repr(embedder), str(embedder.identity), str(error), repr(error.__cause__), repr(vars(embedder))):
        assert KEY not in shown


def test_the_api_itself_needs_a_key(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UserError, match="NO_SUCH_KEY"):
        OpenAIEmbedder(api_key_env="NO_SUCH_KEY").embed(["a"])


def test_identity():
    plain = OpenAIEmbedder()
    assert plain.identity == OpenAIEmbedder(base_url="http://elsewhere/v1", api_key_env="X", concurrency=9).identity
    for change in ({"model": "x"}, {"dimensions": 5}, {"shorten": True}, {"revision": "2"}, {"query_prompt": "q"},
                   {"passage_prompt": "p"}, {"max_tokens": 99}, {"long_text": "truncate"}):
        assert OpenAIEmbedder(**change).identity != plain.identity
    with pytest.raises(UserError):
        OpenAIEmbedder(batch_size=0)
