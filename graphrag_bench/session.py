"""What the cells of a sweep share: one store, one reply cache, each dataset, embedder and model backend once."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from graphrag_bench.config.schema import SELECTORS, filled
from graphrag_bench.data.types import Dataset
from graphrag_bench.embedding.base import Embedder
from graphrag_bench.embedding.cached import CachedEmbedder
from graphrag_bench.llm.base import ChatBackend
from graphrag_bench.llm.cache import ReplyCache
from graphrag_bench.llm.ledger import Budget, Entry, Ledger, Prices
from graphrag_bench.llm.service import Chat
from graphrag_bench.progress import Progress, Silent
from graphrag_bench.registry import REGISTRY
from graphrag_bench.store.artifacts import Store, digest
from graphrag_bench.store.faults import disk_faults
from graphrag_bench.weights import store_root


class Session:
    """Shared resources. Use as an async context manager; everything is made when first asked for."""

    def __init__(self, store: Path | None = None, progress: Progress | None = None) -> None:
        self.progress: Progress = progress or Silent()
        self.root = store or store_root()
        self.store = Store(self.root, self.progress.say)
        self._datasets: dict[str, Dataset] = {}
        self._embedders: dict[str, CachedEmbedder] = {}
        self._backends: dict[str, ChatBackend] = {}
        self._chats: dict[str, Chat] = {}
        self._ledgers: list[Ledger] = []
        self._cache: ReplyCache | None = None

    async def __aenter__(self) -> "Session":
        return self

    async def __aexit__(self, *_: object) -> None:
        for backend in self._backends.values():
            await backend.close()
        if self._cache is not None:
            self._cache.close()

    def dataset(self, config: Mapping[str, Any]) -> Dataset:
        """Return the dataset a configuration names."""
        key = digest(config["dataset"])
        if key not in self._datasets:
            self._datasets[key] = self._make("dataset", config)
        return self._datasets[key]

    def embedder(self, config: Mapping[str, Any]) -> CachedEmbedder:
        """Return the embedder a configuration names, with a memory in front."""
        key = digest(config["embedder"])
        if key not in self._embedders:
            made: Embedder = self._make("embedder", config)
            self._embedders[key] = CachedEmbedder(made)
        return self._embedders[key]

    def backend(self, config: Mapping[str, Any]) -> ChatBackend:
        """Return the model backend a configuration names."""
        key = digest(config["llm"])
        if key not in self._backends:
            made: ChatBackend = self._make("llm", config)
            if hasattr(made, "say"):
                made.say = self.progress.say
            self._backends[key] = made
        return self._backends[key]

    def use_backend(self, config: Mapping[str, Any], backend: ChatBackend) -> None:
        """Put a backend made by the caller in the place of the one a configuration names."""
        self._backends[digest(config["llm"])] = backend

    def _make(self, group: str, config: Mapping[str, Any]) -> Any:
        selector, kind, *_ = SELECTORS[group][0]
        component = REGISTRY.get(kind, config[group][selector])
        return component.call(**filled(config[group], component.settings))

    def cache(self) -> ReplyCache:
        """Return the reply cache."""
        if self._cache is None:
            with disk_faults("open the reply cache", self.root):
                self.root.mkdir(parents=True, exist_ok=True)
                self._cache = ReplyCache(self.root / "replies.sqlite", say=self.progress.say)
        return self._cache

    def ledger(self, config: Mapping[str, Any], path: Path) -> Ledger:
        """Return a ledger for one cell; what earlier cells of the run spent counts against the same budget."""
        limits = config["execution"]
        spent = [ledger.totals() for ledger in self._ledgers]
        tokens = sum(total.paid_prompt_tokens + total.paid_completion_tokens for total in spent)
        money = sum(ledger.spent for ledger in self._ledgers)
        prices = price_of(self.backend(config).identity) if limits["budget_money"] is not None else None
        ledger = Ledger(
            path,
            prices=prices,
            budget=Budget(
                None if limits["budget_tokens"] is None else limits["budget_tokens"] - tokens,
                None if limits["budget_money"] is None else limits["budget_money"] - money,
            ),
        )
        self._ledgers.append(ledger)
        return ledger

    def chat(self, config: Mapping[str, Any], ledger: Ledger, on_call: Callable[[Entry], None]) -> Chat:
        """Return a chat model for one cell: backend, cache and limiter shared by the sweep, a ledger of its own.

        Args:
            config: the cell's configuration.
            ledger: where the cell's calls are booked.
            on_call: told of each call as it is booked.
        """
        limits = config["execution"]
        key = digest([config["llm"], limits])
        if key not in self._chats:
            self._chats[key] = Chat(
                self.backend(config),
                cache=self.cache(),
                concurrency=limits["concurrency"],
                attempts=limits["attempts"],
                requests_per_minute=limits["requests_per_minute"],
                tokens_per_minute=limits["tokens_per_minute"],
                retry_failed=limits["retry_failed"],
            )
        return self._chats[key].booked_to(ledger, on_call)


def price_of(identity: Mapping[str, Any]) -> Prices | None:
    """Return the prices of a model from conf/prices.yaml, or None where it has none; a local runtime costs nothing."""
    from graphrag_bench.config import sources

    table: dict[str, Any] = {}
    for root in sources.roots():  # a package's prices stand above the project's
        if (root / "prices.yaml").is_file():
            table |= sources.read_page(root / "prices.yaml").get("models") or {}
    return Prices.of(identity["model"], table) if identity.get("model") in table else None
