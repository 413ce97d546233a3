"""Arrays on disk: uncompressed npz files whose members are opened as memory maps, so an index costs what is touched."""

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_LOCAL_HEADER = 30  # bytes of a zip member's fixed header; the name and extra lengths stand at 26 and 28


def save_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays into one npz file, stored uncompressed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # a fixed date keeps the same arrays the same bytes
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def load_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Open every array of an npz file written by `save_arrays` as a read-only memory map."""
    out: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for info in archive.infolist():
            file.seek(info.header_offset + 26)
            name_length, extra_length = struct.unpack("<HH", file.read(4))
            file.seek(info.header_offset + _LOCAL_HEADER + name_length + extra_length)
            version = np.lib.format.read_magic(file)
            read_header = (
                np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(file)
            name = info.filename.removesuffix(".npy")
            if 0 in shape:  # an empty file region cannot be mapped
                out[name] = np.empty(shape, dtype)
            else:
                out[name] = np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")
    return out


def pack(name: str, matrix: sparse.csr_array) -> dict[str, NDArray[Any]]:
    """Return the arrays of a sparse matrix under a common name, for `save_arrays`."""
    return {
        f"{name}.indptr": matrix.indptr,
        f"{name}.indices": matrix.indices,
        f"{name}.data": matrix.data,
        f"{name}.shape": np.array(matrix.shape, dtype=np.int64),
    }


def unpack(name: str, arrays: Mapping[str, NDArray[Any]]) -> sparse.csr_array:
    """Return a sparse matrix from the arrays `pack` made of it."""
    rows, columns = (int(side) for side in arrays[f"{name}.shape"])
    parts = (arrays[f"{name}.data"], arrays[f"{name}.indices"], arrays[f"{name}.indptr"])
    return sparse.csr_array(parts, shape=(rows, columns))
