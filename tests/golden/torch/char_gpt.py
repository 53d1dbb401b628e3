#!/usr/bin/env python3
"""Trains in torch what examples/char_gpt trains, from the same parameters on the same batches.

Needs Debian's python3-torch and python3-numpy. Without --against it writes char_gpt.json, the
losses of a small model that tests/examples/char_gpt_test.cpp expects:
  /usr/bin/python3 char_gpt.py
With --against it compares with what `char_gpt --json FILE` has written, and fails if the last loss
differs by more than 2 %:
  char_gpt --json weft.json && /usr/bin/python3 char_gpt.py --against weft.json
This takes torch a few minutes, and ten times as long without OpenBLAS (libopenblas0).
All options of the model are char_gpt's. The script computes initial values and batches itself: Philox
4x32-10 by counter (spmd/program/philox.hpp) and std::mt19937_64 from a std::seed_seq (text.cpp).
"""

import argparse
import json
import math
import pathlib
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
SMALL = {"text": str(HERE.parents[2] / "LICENSE"), "layers": 2, "heads": 4, "size": 32,
         "length": 16, "batch": 8, "steps": 12, "lr": 0.01, "seed": 3}


def philox(seed, stream, counters):
    """Returns the words of the blocks with key `seed` and counters (counter, stream)."""
    low = np.uint64(0xFFFFFFFF)
    shift = np.uint64(32)
    counters = counters.astype(np.uint64)
    stream = np.full_like(counters, stream)
    a, b, c, d = counters & low, counters >> shift, stream & low, stream >> shift
    key = [seed % 2**32, seed >> 32]
    for _ in range(10):
        even, odd = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        a, b = (odd >> shift) ^ b ^ np.uint64(key[0]), odd & low
        c, d = (even >> shift) ^ d ^ np.uint64(key[1]), even & low
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return a, b, c, d


def random_words(seed, name, counters):
    """Returns the first word of the blocks whose stream is the name's hash."""
    stream = 0xCBF29CE484222325
    for byte in name.encode():
        stream = (stream ^ byte) * 0x100000001B3 % 2**64
    return philox(seed, stream, counters)[0]


def uniform(seed, name, counters):
    words = random_words(seed, name, counters) >> np.uint64(8)
    return words.astype(np.float32) * np.float32(2**-24)


def initial(seed, name, parameter):
    """Initializes like the layers of spmd/nn/layers.cpp: embeddings normal, weights and biases uniform."""
    module, kind = name.split(".")[-2:]
    counters = np.arange(parameter.numel())
    if module in ("tokens", "positions"):
        radius = np.sqrt(-2 * np.log(1 - uniform(seed, name, 2 * counters).astype(np.float64)))
        angle = 2 * math.pi * uniform(seed, name, 2 * counters + 1).astype(np.float64)
        return 0.02 * radius * np.cos(angle)
    if module in ("ln1", "ln2", "norm"):
        return np.full(len(counters), 1.0 if kind == "weight" else 0.0)
    bound = np.float32(1 / math.sqrt(parameter.fan_in))
    return bound * (2 * uniform(seed, name, counters) - np.float32(1))


def seed_words(words, count):
    """Computes std::seed_seq{words}.generate of `count` words, 623 or more."""
    mask, size = 2**32 - 1, len(words)
    t = 11
    p = (count - t) // 2
    q = p + t
    b = [0x8B8B8B8B] * count
    for k in range(count):
        x = b[k] ^ b[(k + p) % count] ^ b[k - 1]
        r1 = 1664525 * (x ^ x >> 27) & mask
        r2 = r1 + (size if k == 0 else k + words[k - 1] if k <= size else k) & mask
        b[(k + p) % count] = b[(k + p) % count] + r1 & mask
        b[(k + q) % count] = b[(k + q) % count] + r2 & mask
        b[k] = r2
    for k in range(count):
        x = b[k] + b[(k + p) % count] + b[k - 1] & mask
        r3 = 1566083941 * (x ^ x >> 27) & mask
        r4 = r3 - k & mask
        b[(k + p) % count] ^= r3
        b[(k + q) % count] ^= r4
        b[k] = r4
    return b


def mersenne_twister(words, count):
    """Returns the first numbers of std::mt19937_64 from std::seed_seq{words}."""
    assert count <= 156, f"{count} numbers: expected 156 or fewer, before which no state is reused"
    halves = seed_words(words, 624)
    state = [halves[2 * i] | halves[2 * i + 1] << 32 for i in range(312)]
    lower = 2**31 - 1
    numbers = []
    for i in range(count):
        x = state[i] & ~lower | state[i + 1] & lower
        x = state[i + 156] ^ x >> 1 ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        x ^= x >> 29 & 0x5555555555555555
        x ^= x << 17 & 0x71D67FFFEDA60000
        x ^= x << 37 & 0xFFF7EEE000000000
        numbers.append(x ^ x >> 43)
    return numbers


def linear(size, out, bias=True):
    layer = nn.Linear(size, out, bias)
    for parameter in layer.parameters():
        parameter.fan_in = size
    return layer


class Block(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.heads = o.heads
        self.ln1, self.ln2 = nn.LayerNorm(o.size), nn.LayerNorm(o.size)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, linear(o.size, o.size))
        self.up, self.down = linear(o.size, 4 * o.size), linear(4 * o.size, o.size)

    def forward(self, x):
        batch, length, size = x.shape
        normed = self.ln1(x)
        q, k, v = (project(normed).view(batch, length, self.heads, -1).transpose(1, 2)
                   for project in (self.q_proj, self.k_proj, self.v_proj))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        unseen = torch.ones(length, length, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(unseen, -math.inf).softmax(-1) @ v
        x = x + self.out_proj(mixed.transpose(1, 2).reshape(batch, length, size))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, o):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, o.size)
        self.positions = nn.Embedding(o.length, o.size)
        self.norm = nn.LayerNorm(o.size)
        self.head = linear(o.size, vocabulary, bias=False)
        self.num_layers = o.layers
        for i in range(o.layers):
            self.add_module(f"block{i}", Block(o))
        with torch.no_grad():
            for name, p in self.named_parameters():
                p.copy_(torch.from_numpy(initial(o.seed, name, p)).view(p.shape))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for i in range(self.num_layers):
            x = getattr(self, f"block{i}")(x)
        return self.head(self.norm(x))


def rate(step, o):
    """Computes weft::cosine_schedule."""
    steps, warmup = o.steps + 1, o.steps // 20
    if step < warmup:
        return o.lr * (step + 1) / (warmup + 1)
    return o.lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def train(o):
    text = pathlib.Path(o.text).read_bytes()
    letters = bytes(sorted(set(text), key=lambda letter: (letter + 128) % 256))  # as signed chars
    ids = torch.tensor([letters.index(letter) for letter in text])
    net = Gpt(len(letters), o)
    optimizer = torch.optim.AdamW(net.parameters(), lr=o.lr, weight_decay=0.1)
    losses = []
    for step in range(o.steps):
        draws = mersenne_twister([o.seed % 2**32, o.seed >> 32, step % 2**32, step >> 32], o.batch)
        windows = torch.stack([ids[at : at + o.length + 1]
                               for at in (draw % (len(ids) - o.length) for draw in draws)])
        optimizer.param_groups[0]["lr"] = rate(step, o)
        logits = net(windows[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % max(o.steps // 20, 1) == 0 or step == 0:
            print(f"step {step + 1:5}/{o.steps}  loss {losses[-1]:.4f}", flush=True)
    return losses


def compare(losses, weft):
    assert len(losses) == len(weft), f"{len(losses)} losses, but weft has {len(weft)}"
    off = [abs(b / a - 1) for a, b in zip(losses, weft)]
    last = range(max(len(losses) - 50, 0), len(losses))
    print(f"loss after {len(losses)} steps: torch {losses[-1]:.6f}, weft {weft[-1]:.6f}, "
          f"off by {off[-1]:.1e}")
    print(f"mean of the last {len(last)}: torch {np.mean([losses[i] for i in last]):.6f}, "
          f"weft {np.mean([weft[i] for i in last]):.6f}; a step is off by {max(off):.1e} at most")
    return off[-1] <= 0.02


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3")
    for name, default in (("layers", 4), ("heads", 4), ("size", 128), ("length", 64), ("batch", 16),
                          ("steps", 500), ("seed", 0)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--against", help="what char_gpt --json has written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.against:
        begin = time.monotonic()
        losses = train(options)
        print(f"{1000 * (time.monotonic() - begin) / options.steps:.1f} ms a step")
        weft = json.loads(pathlib.Path(options.against).read_text())["loss_history"]
        return 0 if compare(losses, weft) else 1
    torch.set_default_dtype(torch.float64)
    losses = train(argparse.Namespace(**SMALL))
    path = HERE / "char_gpt.json"
    rounded = [round(loss, 7) for loss in losses]
    path.write_text(json.dumps({"loss_history": rounded}, indent=1) + "\n")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
