"""Content-addressed artifacts: every stage's result is kept under the hash of all that can change it.

An artifact is written aside, synced and renamed, so it is there whole or not at all; a lock keeps a second writer waiting
until the first is done, and then it finds the result. Every file's SHA-256 stands in the manifest, so damage is noticed
when the artifact is opened, the damaged folder is moved aside and the stage is built again.
"""

import asyncio
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from graphrag_bench import __version__
from graphrag_bench.errors import UserError
from graphrag_bench.store.faults import disk_faults

Say = Callable[[str], None]
_MANIFEST = "manifest.json"
_POLL_S = 0.2


def canonical(value: Any) -> str:
    """Return the one JSON text of a value, for hashing."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@dataclass(frozen=True)
class Spec:
    """All that can change an artifact: the component, its version and settings, and the keys of its inputs."""

    kind: str
    component: str
    version: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The artifact's key."""
        return digest(self.to_json())[:32]

    def to_json(self) -> dict[str, Any]:
        """Return the spec as plain data."""
        return {
            "kind": self.kind,
            "component": self.component,
            "version": self.version,
            "settings": dict(self.settings),
            "inputs": dict(self.inputs),
        }


@dataclass(frozen=True)
class Artifact:
    """A finished artifact: its folder, and what its manifest says (``facts`` are the builder's own)."""

    key: str
    path: Path
    manifest: Mapping[str, Any]
    built: bool  # True when this call built it, False when it was there

    @property
    def facts(self) -> dict[str, Any]:
        """What the builder recorded: counts, tokens, seconds."""
        return dict(self.manifest["facts"])


Build = Callable[[Path], Awaitable[dict[str, Any]]]


class Store:
    """The folder of artifacts. Several processes may use one store at a time."""

    def __init__(self, root: Path, say: Say = lambda _: None) -> None:
        self.root = root
        self.say = say
        self._verified: dict[str, Artifact] = {}

    def folder(self, spec: Spec) -> Path:
        """Return where the artifact of ``spec`` lies, or would."""
        return self.root / spec.kind / spec.key

    def find(self, spec: Spec) -> Artifact | None:
        """Return the artifact if it is there and undamaged; a damaged one is moved aside and said."""
        known = self._verified.get(spec.key)
        if known is not None and known.path.exists():
            return known
        path = self.folder(spec)
        if not path.exists():
            return None
        fault = _damage(path)
        if fault:
            self._set_aside(path, fault)
            return None
        manifest = json.loads((path / _MANIFEST).read_text("utf-8"))
        artifact = Artifact(spec.key, path, manifest, built=False)
        self._verified[spec.key] = artifact
        return artifact

    @asynccontextmanager
    async def alone(self, name: str, what: str) -> AsyncIterator[None]:
        """Hold a lock of that name against other processes; ``what`` is said where one has to wait."""
        with disk_faults("write to the artifact store", self.root):
            (self.root / "locks").mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.root / "locks" / f"{digest(name)[:32]}.lock", thread_local=False)
            await self._acquire(lock, f"another run is at work in {what}; waiting for it")
        try:
            yield
        finally:
            lock.release()

    async def get(self, spec: Spec, build: Build) -> Artifact:
        """Return the artifact, building it under a lock if it is not there.

        Args:
            spec: what it is.
            build: writes the files into the given empty folder and returns facts for the manifest.
        """
        found = self.find(spec)
        if found is not None:
            return found
        path = self.folder(spec)
        with disk_faults("write to the artifact store", self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path.parent / f"{spec.key}.lock", thread_local=False)
            await self._acquire(lock, f"another run is building {spec.kind} {spec.component}; waiting for it")
        try:
            found = self.find(spec)  # another process may have built it while this one waited
            return found if found is not None else await self._build(spec, path, build)
        finally:
            lock.release()

    async def _acquire(self, lock: FileLock, waiting: str) -> None:
        waited = False
        while True:
            try:
                lock.acquire(timeout=0)
            except Timeout:
                if not waited:
                    self.say(waiting)
                    waited = True
                await asyncio.sleep(_POLL_S)
            else:
                return

    async def _build(self, spec: Spec, path: Path, build: Build) -> Artifact:
        for left in path.parent.glob(f".{spec.key}.*"):  # by a killed run: the lock says that nobody writes there now
            shutil.rmtree(left, ignore_errors=True)
        aside = path.parent / f".{spec.key}.{uuid.uuid4().hex[:8]}"
        started, cpu = time.perf_counter(), time.process_time()
        try:
            with disk_faults(f"write the {spec.kind} artifact", self.root):
                aside.mkdir()
                facts = await build(aside)
                facts.setdefault("seconds", round(time.perf_counter() - started, 3))
                facts.setdefault("cpu_seconds", round(time.process_time() - cpu, 3))
                written = sorted(path for path in aside.rglob("*") if path.is_file())
                files = {file.relative_to(aside).as_posix(): _file_facts(file) for file in written}
                manifest = {"spec": spec.to_json(), "files": files, "facts": facts, "graphrag_bench": __version__}
                _write_synced(aside / _MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
                aside.rename(path)
                _sync_folder(path.parent)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._verified[spec.key] = Artifact(spec.key, path, manifest, built=False)
        return Artifact(spec.key, path, manifest, built=True)

    def discard(self, spec: Spec) -> None:
        """Remove an artifact, so that it is built again."""
        self._verified.pop(spec.key, None)
        with disk_faults("remove an artifact", self.folder(spec)), suppress(FileNotFoundError):
            shutil.rmtree(self.folder(spec))

    def _set_aside(self, path: Path, fault: str) -> None:
        target = self.root / "damaged" / f"{path.name}-{uuid.uuid4().hex[:8]}"
        self.say(
            f"the {path.parent.name} artifact {path.name[:8]} is damaged ({fault}); it is moved aside and built again"
        )
        with disk_faults(f"set the damaged artifact {path} aside", self.root):
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)


def _damage(path: Path) -> str:
    """Return what is wrong with an artifact's folder, or an empty string."""
    try:
        manifest = json.loads((path / _MANIFEST).read_text("utf-8"))
        files = dict(manifest["files"])
        complete = {"spec", "facts"} <= manifest.keys()
    except FileNotFoundError:
        return "its manifest is missing"
    except (ValueError, KeyError, TypeError):
        return "its manifest cannot be read"
    except OSError as error:
        raise UserError(
            f"Cannot read the artifact store ({path}): {error.strerror}.",
            "Make the folder readable or set GRAPHRAG_BENCH_STORE to another one.",
        ) from error
    if not complete:
        return "its manifest is not complete"
    for name, facts in files.items():
        if not (path / name).is_file():
            return f"{name} is missing"
        if _file_facts(path / name) != facts:
            return f"{name} does not match its checksum"
    return ""


def _file_facts(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}


def _write_synced(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
