"""Reads files that weft has written as other programs do: FORMAT PATH EXPECTED. EXPECTED is a JSON file,
{"NAME": {"dtype": ..., "shape": [...], "hex": "elements, row-major, little-endian"}, ...}; the
dtypes are the format's. Prints each difference and fails, or prints nothing."""

import json
import pathlib
import struct
import sys


def read_safetensors(path):
    """Follows only the format's description."""
    file = path.read_bytes()
    (size,) = struct.unpack_from("<Q", file)
    header = json.loads(file[8:8 + size])
    metadata = header.pop("__metadata__", {})
    assert all(type(value) is str for value in metadata.values()), metadata
    data, end, tensors = file[8 + size:], 0, {}
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        assert entry.keys() == {"dtype", "shape", "data_offsets"}, entry
        begin, last = entry["data_offsets"]
        assert begin == end, f"{name} begins at {begin}, not at {end}"
        end = last
        tensors[name] = entry["dtype"], entry["shape"], data[begin:end]
    assert end == len(data), f"{len(data) - end} bytes behind the last tensor"
    return tensors


def as_tensor(array):
    return array.dtype.str, list(array.shape), array.tobytes()


def read_npz(path):
    import numpy

    with numpy.load(path, allow_pickle=False) as arrays:
        return {name: as_tensor(arrays[name]) for name in arrays.files}


def read_npy(folder):
    import numpy

    return {path.name[:-4]: as_tensor(numpy.load(path, allow_pickle=False))
            for path in folder.iterdir()}


def main():
    read = {"safetensors": read_safetensors, "npz": read_npz, "npy": read_npy}[sys.argv[1]]
    found = read(pathlib.Path(sys.argv[2]))
    expected = {name: (tensor["dtype"], tensor["shape"], bytes.fromhex(tensor["hex"]))
                for name, tensor in json.loads(pathlib.Path(sys.argv[3]).read_text()).items()}
    names = sorted(found.keys() | expected.keys())
    differences = [f"{name!r}: {found.get(name)}, not {expected.get(name)}"
                   for name in names if found.get(name) != expected.get(name)]
    sys.exit("\n".join(differences) or None)


main()
