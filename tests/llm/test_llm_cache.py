"""The reply cache on disk: shared, recovered when damaged, never a traceback."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_bench.errors import UserError
from graphrag_bench.llm.cache import ReplyCache, Stored

STORED = Stored("Ann", 10, 2, 0.5, retries=1, truncated=True)

WRITER = """
import sys
from pathlib import Path
from graphrag_bench.llm.cache import ReplyCache, Stored
with ReplyCache(Path(sys.argv[1])) as cache:
    for n in range(200):
        cache.put(f"{sys.argv[2]}-{n}", Stored(f"{sys.argv[2]} {n}", 1, 1, 0.0), prompt=f"p{n}", identity="{}")
        cache.put("both", Stored("both", 1, 1, 0.0), prompt="both", identity="{}")
"""


def put(cache: ReplyCache, key: str = "k", stored: Stored = STORED) -> None:
    cache.put(key, stored, prompt=f"p-{key}", identity='{"model":"m"}')


def test_what_is_put_is_got_also_by_another_reader(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "deep" / "r.db") as cache:
        assert cache.get("k") is None
        put(cache)
        with ReplyCache(tmp_path / "deep" / "r.db") as other:
            assert other.get("k") == STORED
            assert list(other.rows()) == [("p-k", '{"model":"m"}', STORED)]
        cache.forget("k")
        assert cache.get("k") is None and len(cache) == 0


def test_a_failure_is_a_row_like_any_other_but_not_a_transient_one(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "r.db") as cache:
        put(cache, "a", Stored("not JSON", 1, 1, 0.0, failure="invalid_json"))
        put(cache, "b", Stored("refused", 0, 0, 0.0, failure="connection"))
        assert cache.get("a") == Stored("not JSON", 1, 1, 0.0, failure="invalid_json")
        assert cache.get("b") is None


def test_it_opens_again_after_close(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "r.db")
    put(cache)
    cache.close()
    assert cache.get("k") == STORED
    cache.close()


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(file), name], stderr=subprocess.PIPE)
               for name in ("one", "two")]
    for writer in writers:
        assert writer.wait(30) == 0, writer.stderr and writer.stderr.read().decode()
        assert writer.stderr is not None
        writer.stderr.close()
    with ReplyCache(file) as cache:
        assert len(cache) == 401
        assert cache.get("one-199") == Stored("one 199", 1, 1, 0.0)
        assert cache.get("two-0") == Stored("two 0", 1, 1, 0.0)


@pytest.mark.parametrize("damage", ["not a database", "torn", "zeroed page"])
def test_a_damaged_file_is_moved_aside_and_a_fresh_one_begun(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "r.db"
    with ReplyCache(file) as cache:
        for n in range(500):
            put(cache, f"k{n}")
    if damage == "not a database":
        file.write_bytes(b"hello " * 1000)
    else:
        raw = bytearray(file.read_bytes())
        if damage == "torn":
            del raw[len(raw) // 2 :]
        else:
            raw[4096:] = bytes(len(raw) - 4096)
        file.write_bytes(raw)
    said: list[str] = []
    with ReplyCache(file, say=said.append) as cache:
        for n in range(500):
            cache.get(f"k{n}")
        put(cache, "new")
        assert cache.get("new") == STORED
    assert len(said) == 1 and "damaged" in said[0]
    assert (tmp_path / "r.db.damaged-1").exists()
    with ReplyCache(file) as cache:
        assert cache.get("new") == STORED


def test_damage_met_while_open_is_recovered_too(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    said: list[str] = []
    with ReplyCache(file, say=said.append) as cache:
        put(cache)
        cache.close()
        file.write_bytes(b"\0" * 100 + b"junk" * 5000)
        assert cache.get("k") is None
        put(cache)
        assert cache.get("k") == STORED
    assert len(said) == 1


def test_a_flipped_byte_in_a_reply_is_a_miss(tmp_path: Path) -> None:
    file = tmp_path / "r.db"
    with ReplyCache(file) as cache:
        put(cache)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE replies_1 SET text = 'Anm'")
    database.close()
    with ReplyCache(file) as cache:
        assert cache.get("k") is None


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be used"):
        ReplyCache(tmp_path / "file" / "r.db")


def test_a_path_that_is_a_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be used"):
        ReplyCache(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_file_is_one_sentence(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "r.db") as cache:
        put(cache)
    (tmp_path / "r.db").chmod(0o400)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UserError, match="cannot be used"), ReplyCache(tmp_path / "r.db") as cache:
            put(cache, "other")
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "r.db") as cache:
        put(cache)
        assert cache._database is not None
        cache._database.execute("PRAGMA max_page_count = 8")
        with pytest.raises(UserError, match="full"):
            for n in range(100):
                put(cache, f"k{n}", Stored("x" * 4000, 1, 1, 0.0))


def test_threads_share_one_cache(tmp_path: Path) -> None:
    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(put, cache, f"k{n}") for n in range(50)))

    with ReplyCache(tmp_path / "r.db") as cache:
        asyncio.run(main())
        assert len(cache) == 50
