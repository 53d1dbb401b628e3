"""The models of models.cpp in torch. Arguments: FOLDER MODEL DTYPE THREADS RANK RANKS.

FOLDER has state.safetensors, the initial parameters, and batches: their shapes in batches.json, their
elements in x.bin and labels.bin. Each rank uses its rows of them. The script answers a line of stdin,
"train COUNT", by {"ms": [...], "losses": [...]} of COUNT steps, and "blas" by {"blas": the library that
multiplies its f32 matrices}."""

import json
import math
import os
import pathlib
import subprocess
import sys
import time

# Debian's OpenBLAS doesn't know new cores, and has its own threads. Threads that spin while they wait
# would take the cores of the other side.
os.environ.update(OPENBLAS_CORETYPE="SkylakeX", OPENBLAS_NUM_THREADS=sys.argv[4],
                  OMP_WAIT_POLICY="passive")

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn


def parameters_of(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        numbers = np.frombuffer(data, np.float32, (end - begin) // 4, 8 + size + begin)
        state[name] = torch.from_numpy(numbers.reshape(entry["shape"]).copy())
    return state


def batches_of(folder, rank, ranks):
    shapes = json.loads(pathlib.Path(f"{folder}/batches.json").read_text())

    def read(name, dtype):
        numbers = np.fromfile(f"{folder}/{name}.bin", dtype).reshape(-1, *shapes[name])
        return [torch.from_numpy(batch).chunk(ranks)[rank].contiguous() for batch in numbers]

    x = read("x", np.int32 if shapes["ids"] else np.float32)
    return list(zip(x, [labels.long().flatten() for labels in read("labels", np.int32)]))


class Mlp(nn.Module):
    def __init__(self, state):
        super().__init__()
        for name in ("fc1", "fc2", "fc3"):
            self.add_module(name, nn.Linear(*state[f"{name}.weight"].shape[::-1]))

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class Cnn(nn.Module):
    def __init__(self, state):
        super().__init__()
        for name in ("conv1", "conv2"):
            out, inner = state[f"{name}.weight"].shape[:2]
            self.add_module(name, nn.Conv2d(inner, out, 3, padding=1))
        for name in ("fc1", "fc2"):
            self.add_module(name, nn.Linear(*state[f"{name}.weight"].shape[::-1]))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(size), nn.LayerNorm(size)
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(size, size))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

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
    def __init__(self, state):
        super().__init__()
        vocabulary, size = state["tokens.weight"].shape
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Embedding(*state["positions.weight"].shape)
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)
        self.layers = sum(name.endswith("up.weight") for name in state)
        for i in range(self.layers):
            self.add_module(f"block{i}", Block(size, max(size // 32, 2)))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for i in range(self.layers):
            x = getattr(self, f"block{i}")(x)
        return self.head(self.norm(x))


class Training:
    def __init__(self, folder, name, dtype, rank, ranks):
        state = parameters_of(f"{folder}/state.safetensors")
        net = {"mlp": Mlp, "cnn": Cnn, "gpt": Gpt}[name](state)
        net.load_state_dict(state)
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
        self.model = nn.parallel.DistributedDataParallel(net) if ranks > 1 else net
        self.batches = batches_of(folder, rank, ranks)
        self.bf16 = dtype == "bf16"
        self.ranks = ranks
        self.step = 0

    def train(self, count):
        times, losses = [], []
        for _ in range(count):
            begin = time.perf_counter()
            x, labels = self.batches[self.step % len(self.batches)]
            self.step += 1
            with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
                logits = self.model(x)
            loss = F.cross_entropy(logits.float().view(len(labels), -1), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
            loss.item()
            times.append(1e3 * (time.perf_counter() - begin))
        losses = torch.stack(losses)
        if self.ranks > 1:
            dist.all_reduce(losses)
        return {"ms": times, "losses": (losses / self.ranks).tolist()}


def blas():
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "blas" in line}
    names = sorted({os.path.basename(os.path.realpath(path)) for path in paths})
    return next((name for name in names if "openblas" in name), names[0] if names else "none")


def main():
    folder, name, dtype = sys.argv[1:4]
    threads, rank, ranks = map(int, sys.argv[4:7])
    torch.set_num_threads(threads)
    others = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:5], str(other), str(ranks)],
                               stdin=subprocess.DEVNULL)
              for other in range(1, ranks) if rank == 0]
    if ranks > 1:
        dist.init_process_group("gloo", f"file://{folder}/ranks", rank=rank, world_size=ranks)
    training = Training(folder, name, dtype, rank, ranks)
    count = torch.zeros(1, dtype=torch.int64)
    while True:
        line = sys.stdin.readline() if rank == 0 else ""
        if line == "blas\n":
            print(json.dumps({"blas": blas()}), flush=True)
            continue
        count[0] = int(line.split()[1]) if line else 0
        if ranks > 1:
            dist.broadcast(count, 0)
        if count.item() == 0:
            break
        made = training.train(int(count.item()))
        if rank == 0:
            print(json.dumps(made), flush=True)
    for other in others:
        other.wait()


main()
