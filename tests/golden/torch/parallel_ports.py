#!/usr/bin/env python3
"""Trains in torch what examples/pipeline and moe train, from the same parameters on the same
batches, and writes parallel_ports.json, the losses that tests/examples/ports_test.cpp expects. Here
nothing is parallel: all layers run one after another, and every expert computes every letter, but
only those letters count for which it has a place."""

import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import ports
from ports import HEADS, LENGTH, SIZE, RMSNorm, cosine, embedding, rope, train_on_text, uniform_values

HERE = pathlib.Path(__file__).parent
BATCH, LAYERS = 16, 4
BLOCKS, EXPERTS, CHOICES, CAPACITY, BALANCE = 2, 4, 2, 1.25, 0.01


def initial(name, p, modules):
    if name.startswith("layers_norm"):
        return np.ones(p.numel())
    if name.startswith("layers_") or name.endswith(("experts.up", "experts.down")):
        return uniform_values(name, p, 1 / math.sqrt(p.shape[-1]))
    return ports.initial(name, p, modules)


def causal_mask():
    return torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


class Pipeline(nn.Module):
    """Puts the weights of all layers along dim 0 of one parameter."""

    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = embedding(vocabulary, 0.02)
        for name, shape in (
            ("norm1", (SIZE,)), ("query", (SIZE, SIZE)), ("key", (SIZE, SIZE)),
            ("value", (SIZE, SIZE)), ("out", (SIZE, SIZE)), ("norm2", (SIZE,)),
            ("up", (4 * SIZE, SIZE)), ("down", (SIZE, 4 * SIZE)),
        ):
            self.register_parameter("layers_" + name, nn.Parameter(torch.zeros(LAYERS, *shape)))
        self.norm = RMSNorm()
        self.head = nn.Linear(SIZE, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids)
        for i in range(LAYERS):
            own = lambda name: getattr(self, "layers_" + name)[i]
            y = rms_norm(x, own("norm1"))
            q, k, v = ((y @ own(name).T).unflatten(-1, (HEADS, SIZE // HEADS)).transpose(1, 2)
                       for name in ("query", "key", "value"))
            scores = rope(q) @ rope(k).transpose(-1, -2) / math.sqrt(SIZE // HEADS)
            mixed = scores.masked_fill(causal_mask(), -math.inf).softmax(-1) @ v
            x = x + mixed.transpose(1, 2).flatten(2) @ own("out").T
            x = x + F.gelu(rms_norm(x, own("norm2")) @ own("up").T) @ own("down").T
        return self.head(self.norm(x))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(SIZE, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.zeros(EXPERTS, 4 * SIZE, SIZE))
        self.down = nn.Parameter(torch.zeros(EXPERTS, SIZE, 4 * SIZE))

    def forward(self, x):
        probability = self.router(x).softmax(-1)
        likeliest, index = probability.topk(CHOICES)
        likeliest = likeliest / likeliest.sum(-1, keepdim=True)
        places = math.ceil(CAPACITY * CHOICES * LENGTH / EXPERTS)
        has_place = torch.zeros(len(x), LENGTH, CHOICES)
        for window in range(len(x)):
            taken = [0] * EXPERTS
            for choice in range(CHOICES):
                for letter in range(LENGTH):
                    expert = index[window, letter, choice]
                    has_place[window, letter, choice] = float(taken[expert] < places)
                    taken[expert] += 1
        chosen = F.one_hot(index, EXPERTS).double()
        share = (likeliest * has_place).unsqueeze(-1).mul(chosen).sum(-2)
        hidden = F.gelu(torch.einsum("wld,efd->wlef", x, self.up))
        balance = EXPERTS * (chosen.mean((0, 1, 2)) * probability.mean((0, 1))).sum()
        return torch.einsum("wle,wlef,edf->wld", share, hidden, self.down), balance


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = RMSNorm(), RMSNorm()
        self.attention = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
        self.experts = Experts()

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=causal_mask(), need_weights=False)[0]
        made, balance = self.experts(self.norm2(x))
        return x + made, balance


class Moe(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens, self.positions = embedding(vocabulary, 0.02), embedding(LENGTH, 0.02)
        self.blocks = nn.ModuleList([Block() for _ in range(BLOCKS)])
        self.norm = RMSNorm()
        self.head = nn.Linear(SIZE, vocabulary, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        balances = 0
        for block in self.blocks:
            x, balance = block(x)
            balances = balances + balance
        return self.head(self.norm(x)), balances


def balanced(net, ids, following):
    logits, balance = net(ids)
    loss = F.cross_entropy(logits.flatten(0, 1), following.flatten())
    return loss + BALANCE * balance, loss


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    adamw = lambda p: torch.optim.AdamW(p, weight_decay=0.1)
    rate = lambda step: cosine(step, 2e-3, 20)
    golden = {
        "pipeline": train_on_text(Pipeline, adamw, 1.0, rate, batch=BATCH, initial=initial),
        "moe": train_on_text(Moe, adamw, 1.0, rate, balanced, BATCH, initial),
    }
    (HERE / "parallel_ports.json").write_text(json.dumps(golden, indent=1) + "\n")
    for name, losses in golden.items():
        print(name, losses[0], losses[-1])


if __name__ == "__main__":
    main()
