#!/usr/bin/env python3
"""Writes the golden files of this folder with only Python's struct and json, as another program
would. Tensors are in the order of their names, unlike in weft's own files, and so lie at odd
offsets.

  kinds.safetensors: a tensor of each kind that weft holds or converts
  split/: a model in two files and their index, as Hugging Face's loaders write them
"""

import json
import math
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def bf16(number):
    """Returns the upper half of a float, rounded to nearest even."""
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    return struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


PACK = {
    "BOOL": lambda number: struct.pack("<?", number),
    "U8": lambda number: struct.pack("<B", number),
    "I8": lambda number: struct.pack("<b", number),
    "I16": lambda number: struct.pack("<h", number),
    "I32": lambda number: struct.pack("<i", number),
    "I64": lambda number: struct.pack("<q", number),
    "F16": lambda number: struct.pack("<e", number),
    "BF16": bf16,
    "F32": lambda number: struct.pack("<f", number),
    "F64": lambda number: struct.pack("<d", number),
}


def write(path, tensors, metadata=None):
    """Writes tensors by name: dtype, shape, elements."""
    header, elements = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, (dtype, shape, numbers) in tensors.items():
        assert len(numbers) == math.prod(shape), name
        begin = len(elements)
        elements += b"".join(PACK[dtype](number) for number in numbers)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(elements)]}
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + elements)
    return len(elements)


def rising(count, factor):
    """Returns -1 * factor, 0, factor, 2 * factor, ..."""
    return [(i - 1) * factor for i in range(count)]


KINDS = {
    "bool": ("BOOL", [5], [True, False, False, True, True]),
    "bf16": ("BF16", [2, 3], rising(6, 0.75)),
    "f16": ("F16", [3, 4], rising(12, 0.125)),
    "f32": ("F32", [4, 2], rising(8, 1.1)),
    "f64": ("F64", [3], rising(3, 1e-3)),
    "i16": ("I16", [2], [-300, 300]),
    "i32": ("I32", [], [-70000]),
    "i64": ("I64", [2], [-(1 << 40), 1 << 40]),
    "i8": ("I8", [3], [-128, 0, 127]),
    "none": ("F32", [0, 4], []),
    "u8": ("U8", [3], [0, 128, 255]),
}

LAYERS = {
    "fc1.weight": ("BF16", [4, 6], rising(24, 0.5)),
    "fc1.bias": ("F32", [4], rising(4, 0.25)),
    "fc2.weight": ("F16", [2, 4], rising(8, 2.0)),
    "fc2.bias": ("F32", [2], rising(2, 3.0)),
}


def main():
    write(HERE / "kinds.safetensors", KINDS, {"format": "pt", "by": "make.py"})
    split = HERE / "split"
    split.mkdir(exist_ok=True)
    files = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    weight_map = {name: files[name.startswith("fc2")] for name in LAYERS}
    size = 0
    for file in files:
        part = {name: LAYERS[name] for name in LAYERS if weight_map[name] == file}
        size += write(split / file, part, {"format": "pt"})
    index = {"metadata": {"total_size": size}, "weight_map": weight_map}
    (split / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")


main()
