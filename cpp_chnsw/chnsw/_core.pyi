"""C-HNSW: one navigable graph over all layers of a hierarchy."""

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Index", "simd"]

Floats = NDArray[np.floating[Any]]
Hits = tuple[NDArray[np.int64], NDArray[np.float32]]

def simd(kind: Literal["auto", "portable", "avx2", "avx512"] | None = None) -> str:
    """Return the SIMD kind in force, after setting it if one is given.

    Distances of different kinds differ in their last bits, as sums are taken in another order.

    Raises:
        ValueError: The processor does not have this kind.
    """

class Index:
    """A navigable graph over all layers of a hierarchy (C-HNSW of ArchRAG), searched from the top layer down.

    Layers are numbered from the bottom: 0 holds the entities, 1 their communities, and so on. Ids are the rows of the arrays
    given. Arrays of any float type and strides are converted to float32 rows. All functions release the interpreter's lock and
    may be called from several threads.

    Args:
        dim: Length of a vector, at most 65,536.
        metric: ``ip``: distance is minus the dot product; ``l2``: the squared distance; ``cosine``: one minus the cosine.
        m: Links a new node chooses; a list holds at most 2m and a few that keep the layer connected.
        ef_construction: Candidates kept while a node is inserted.
        seed: Of the order of insertion. The same data, seed and SIMD kind give the same index whatever the threads.
        dtype: What the traversal reads; its candidates are then ranked by the float32 vectors, which are always kept.
        exact_below: Layers with at most so many vectors are searched exactly, a batch at a time; 50 if None. Unless
            it is 0, a batch of 128 queries or more also searches a larger layer exactly where some of them show that
            the graph would compute more than half as many distances; and int8 and float16 read layers below 1,024
            vectors as float32.
        entries: Nodes found in a layer whose links start the search of the next one.

    Raises:
        ValueError: A setting is out of its range.
    """

    def __init__(
        self,
        dim: int,
        metric: Literal["ip", "l2", "cosine"] = "ip",
        m: int = 32,
        ef_construction: int = 100,
        seed: int = 0,
        dtype: Literal["float32", "float16", "int8"] = "float32",
        *,
        exact_below: int | None = None,
        entries: int = 4,
    ) -> None: ...
    def build(self, layers: Iterable[Floats], threads: int = 0) -> None:
        """Build from layers, bottom first, each of shape (n, dim); what was there is replaced.

        Args:
            layers: At least one layer, none empty.
            threads: 0 takes all the machine has.

        Raises:
            ValueError: A wrong shape, an empty layer, NaN, an infinity, a value beyond 1e16 (65,504 with float16), or with
                ``cosine`` a vector of zeros. The index stays as it was.
            TypeError: Not arrays of floats.
        """

    def search(
        self, queries: Floats, k: int, ef: int = 100, layers: Iterable[int] | None = None, threads: int = 0
    ) -> list[Hits]:
        """Return ids (q, k) and distances (q, k) for every layer, best first, ties by id.

        The search goes from the top down and starts in each layer at what the best of the layer above link to (ArchRAG's
        Algorithm 2). A layer with fewer than k vectors is padded with -1 and infinity.

        Args:
            queries: Shape (q, dim), or (dim,) for one query.
            k: Neighbours wanted in each layer.
            ef: Candidates kept while a layer is searched; at least k are.
            layers: The layers wanted, in the order of the answer; all, bottom first, if None. Others are only passed through.
            threads: 0 takes all the machine has.

        Raises:
            ValueError: The index is empty, or an argument is out of its range.
            TypeError: Not an array of floats, or not an integer.
        """

    def search_layer(self, layer: int, queries: Floats, k: int, ef: int = 100, threads: int = 0) -> Hits:
        """Return ids (q, k) and distances (q, k) of one layer.

        Raises:
            ValueError: As for `search`, and if the layer has fewer than k vectors.
        """

    def add(self, layer: int, vectors: Floats, threads: int = 0) -> NDArray[np.int64]:
        """Add vectors to a layer and return their ids; links from above and below stay the true nearest.

        Adding costs a pass over the layer: add many at a time.
        """

    def save(self, path: str | PathLike[str]) -> None:
        """Write the index to a file, whole or not at all.

        Raises:
            OSError: The file cannot be written.
        """

    @staticmethod
    def load(path: str | PathLike[str], mmap: bool = True) -> Index:
        """Read an index; with ``mmap`` its arrays stay in the file, which must not be changed meanwhile.

        Raises:
            OSError: No such file, not an index, another format version, or damaged (checksum and structure are checked).
        """

    def neighbors(self, layer: int, id: int) -> NDArray[np.int64]:
        """Return the ids of a vector's neighbours in its layer, ascending."""

    def links(self, layer: int, id: int) -> NDArray[np.int64]:
        """Return the id of the nearest vector of the layer below; nothing in the bottom layer."""

    def entry(self, layer: int) -> int:
        """Return the id of the vector from which all others of the layer are reached."""

    def stats(self) -> dict[str, Any]:
        """Return counts, degrees and bytes a layer, and the distances computed by the building and by the last search."""

    def __len__(self) -> int:
        """Return the number of vectors in all layers."""

    @property
    def layers(self) -> Sequence[int]:
        """The sizes of the layers, bottom first."""

    @property
    def dim(self) -> int: ...
    @property
    def metric(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def m(self) -> int: ...
    @property
    def ef_construction(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def exact_below(self) -> int: ...
    @property
    def entries(self) -> int: ...
