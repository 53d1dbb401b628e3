"""Saves and loads the tensors of bench_checkpoint by torch and, if it is installed, safetensors.

The argument is the size in MiB. The script answers each line of stdin, "save PATH" or "load PATH", by the
seconds that it took. A path that ends with .safetensors selects that format."""

import json
import os
import sys
import time

import torch

try:
    import safetensors.torch
except ImportError:
    safetensors = None

ROWS = 2048


def make_tensors(mib):
    """Returns tensors with the elements of bench/checkpoint/files.cpp."""
    tensors = {}
    for layer in range(mib // 16):
        numbers = torch.arange(layer * ROWS * ROWS, (layer + 1) * ROWS * ROWS, dtype=torch.int64)
        elements = (numbers * 2654435761 % 1000003).to(torch.float32)
        tensors[f"layer{layer}.weight"] = elements.reshape(ROWS, ROWS)
    return tensors


def save(tensors, path):
    if path.endswith(".safetensors"):
        safetensors.torch.save_file(tensors, path)
    else:
        torch.save(tensors, path)
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def load(path):
    if path.endswith(".safetensors"):
        return safetensors.torch.load_file(path)
    return torch.load(path)


def main():
    tensors = make_tensors(int(sys.argv[1]))
    for line in sys.stdin:
        what, path = line.split(maxsplit=1)
        path = path.rstrip("\n")
        begin = time.perf_counter()
        loaded = save(tensors, path) if what == "save" else load(path)
        seconds = time.perf_counter() - begin
        if loaded is not None:
            assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
            del loaded
        print(json.dumps(seconds), flush=True)


main()
