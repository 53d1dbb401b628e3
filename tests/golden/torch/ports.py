#!/usr/bin/env python3
"""Trains in torch what examples/resnet and vit train with --plain, and lstm_lm and gpt_gqa, from
the same parameters on the same batches, and writes ports.json, the losses that
tests/examples/ports_test.cpp expects. See char_gpt.py, whose random numbers it uses.

A ResNet's training can be compared for 100 steps only if no rounding error carries a relu over its
kink: with this seed, torch's own losses in float32 and float64 agree to 2e-6, with other seeds
sometimes only to 0.7."""

import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from char_gpt import mersenne_twister, uniform

HERE = pathlib.Path(__file__).parent
SEED, STEPS, BATCH = 4, 100, 12
WIDTH = 4  # of the ResNet
SIZE, HEADS, LAYERS, PATCH = 16, 2, 2, 2
LENGTH, KV_HEADS = 8, 1  # of the language models


def uniform_values(name, p, bound):
    return np.float32(bound) * (2 * uniform(SEED, name, np.arange(p.numel())) - np.float32(1))


def initial(name, p, modules):
    """Initializes like the layers of spmd/nn/."""
    owner, kind = name.rpartition(".")[::2]
    module = modules[owner]
    counters = np.arange(p.numel())
    if isinstance(module, (nn.LayerNorm, nn.BatchNorm2d, RMSNorm)):
        return np.full(p.numel(), 1.0 if kind == "weight" else 0.0)
    if isinstance(module, nn.Embedding):
        radius = np.sqrt(-2 * np.log(1 - uniform(SEED, name, 2 * counters).astype(np.float64)))
        angle = 2 * math.pi * uniform(SEED, name, 2 * counters + 1).astype(np.float64)
        return (module.deviation * radius * np.cos(angle)).astype(np.float32)
    if isinstance(module, nn.LSTM):
        return uniform_values(name, p, 1 / math.sqrt(SIZE))
    if isinstance(module, nn.MultiheadAttention):
        return uniform_values(name, p, math.sqrt(6 / (4 * SIZE))) if kind == "in_proj_weight" else (
            np.zeros(p.numel()))
    if kind == "class_token" or name.endswith("out_proj.bias"):
        return np.zeros(p.numel())
    fan_in = module.weight[0].numel()
    return uniform_values(name, p, 1 / math.sqrt(fan_in))


def begin(net, initial=initial):
    """Gives parameters the initial values of weft's layers."""
    modules = dict(net.named_modules())
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.from_numpy(np.asarray(initial(name, p, modules))).view(p.shape))


def embedding(count, deviation):
    layer = nn.Embedding(count, SIZE)
    layer.deviation = deviation
    return layer


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(SIZE))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class BasicBlock(nn.Module):
    def __init__(self, size_in, size, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(size_in, size, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(size)
        self.conv2 = nn.Conv2d(size, size, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(size)
        self.downsample = None
        if stride != 1 or size_in != size:
            self.downsample = nn.Sequential(nn.Conv2d(size_in, size, 1, stride, bias=False),
                                            nn.BatchNorm2d(size))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, WIDTH, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTH)
        size_in = WIDTH
        for i, size in enumerate((WIDTH, 2 * WIDTH, 4 * WIDTH, 8 * WIDTH)):
            layer = nn.Sequential(BasicBlock(size_in, size, 1 if i == 0 else 2),
                                  BasicBlock(size, size, 1))
            self.add_module(f"layer{i + 1}", layer)
            size_in = size
        self.fc = nn.Linear(8 * WIDTH, 10)

    def forward(self, images):
        x = F.relu(self.bn1(self.conv1(images.view(-1, 1, 8, 8))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(SIZE)
        self.attention = nn.MultiheadAttention(SIZE, HEADS, batch_first=True)
        self.ln2 = nn.LayerNorm(SIZE)
        self.up, self.down = nn.Linear(SIZE, 4 * SIZE), nn.Linear(4 * SIZE, SIZE)

    def forward(self, x):
        y = self.ln1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        count = (8 // PATCH) ** 2
        self.patches = nn.Conv2d(1, SIZE, PATCH, PATCH)
        self.positions = embedding(count + 1, 0.02)
        self.class_token = nn.Parameter(torch.zeros(1, 1, SIZE))
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(SIZE)
        self.head = nn.Linear(SIZE, 10)

    def forward(self, images):
        tokens = self.patches(images.view(-1, 1, 8, 8)).flatten(2).transpose(1, 2)
        first = self.class_token.expand(len(images), 1, SIZE)
        x = torch.cat([first, tokens], 1) + self.positions.weight
        return self.head(self.norm(self.blocks(x)[:, 0]))


class LstmModel(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = embedding(vocabulary, 1)
        self.lstm = nn.LSTM(SIZE, SIZE, LAYERS, batch_first=True)
        self.head = nn.Linear(SIZE, vocabulary)

    def forward(self, ids):
        return self.head(self.lstm(self.tokens(ids))[0])


def rope(x):
    """Rotates the pairs of GPT-NeoX, like weft::rope."""
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half) / half)
    angles = torch.arange(x.shape[-2])[:, None] * rates
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


class GqaBlock(nn.Module):
    def __init__(self):
        super().__init__()
        shared = SIZE // HEADS * KV_HEADS
        self.norm1, self.norm2 = RMSNorm(), RMSNorm()
        for name, size_in, size in (
            ("q_proj", SIZE, SIZE), ("k_proj", SIZE, shared), ("v_proj", SIZE, shared),
            ("out_proj", SIZE, SIZE), ("gate", SIZE, 2 * SIZE), ("up", SIZE, 2 * SIZE),
            ("down", 2 * SIZE, SIZE),
        ):
            self.add_module(name, nn.Linear(size_in, size, bias=False))

    def forward(self, x):
        y = self.norm1(x)
        split = lambda t, heads: t.unflatten(-1, (heads, SIZE // HEADS)).transpose(1, 2)
        q, k = rope(split(self.q_proj(y), HEADS)), rope(split(self.k_proj(y), KV_HEADS))
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, 1)
                for t in (k, split(self.v_proj(y), KV_HEADS)))
        scores = q @ k.transpose(-1, -2) / math.sqrt(SIZE // HEADS)
        unseen = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(unseen, -math.inf).softmax(-1) @ v
        x = x + self.out_proj(mixed.transpose(1, 2).flatten(2))
        z = self.norm2(x)
        return x + self.down(F.silu(self.gate(z)) * self.up(z))


class Gpt(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = embedding(vocabulary, 0.02)
        self.blocks = nn.Sequential(*[GqaBlock() for _ in range(LAYERS)])
        self.norm = RMSNorm()

    def forward(self, ids):
        return self.norm(self.blocks(self.tokens(ids))) @ self.tokens.weight.T


def cosine(step, lr, share):
    """Computes weft::cosine_schedule with warmup = steps / share."""
    steps, warmup = STEPS + 1, STEPS // share
    if step < warmup:
        return lr * (step + 1) / (warmup + 1)
    return lr * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))


def train(net, optimizer, loss_of, rate):
    rows = np.loadtxt(HERE.parents[2] / "examples/data/digits.csv", delimiter=",")
    images = torch.from_numpy(rows[:, :64].astype(np.float32) / np.float32(16)).double()
    labels = torch.from_numpy(rows[:, 64].astype(np.int64))
    losses = []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        part = slice(step * BATCH, (step + 1) * BATCH)
        loss = loss_of(net(images[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def next_letter(net, ids, following):
    loss = F.cross_entropy(net(ids).flatten(0, 1), following.flatten())
    return loss, loss


def train_on_text(make, optimizer_of, norm, rate, loss_of=next_letter, batch=BATCH, initial=initial):
    """`loss_of` returns the loss that is trained and the one that is reported."""
    text = (HERE.parents[2] / "LICENSE").read_bytes()
    letters = bytes(sorted(set(text), key=lambda letter: (letter + 128) % 256))  # as signed chars
    ids = torch.tensor([letters.index(letter) for letter in text])
    net = make(len(letters))
    begin(net, initial)
    optimizer = optimizer_of(net.parameters())
    losses = []
    for step in range(STEPS):
        draws = mersenne_twister([SEED, 0, step, 0], batch)
        windows = torch.stack([ids[at : at + LENGTH + 1]
                               for at in (draw % (len(ids) - LENGTH) for draw in draws)])
        optimizer.param_groups[0]["lr"] = rate(step)
        trained, loss = loss_of(net, windows[:, :-1], windows[:, 1:])
        optimizer.zero_grad()
        trained.backward()
        nn.utils.clip_grad_norm_(net.parameters(), norm)
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    net = ResNet()
    begin(net)
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=1e-4)
    golden = {"resnet": train(net, sgd, F.cross_entropy, lambda step: 1e-4)}
    net = VisionTransformer()
    begin(net)
    adamw = torch.optim.AdamW(net.parameters(), eps=1e-5, weight_decay=0.05)
    smoothed = lambda logits, labels: F.cross_entropy(logits, labels, label_smoothing=0.1)
    golden["vit"] = train(net, adamw, smoothed, lambda step: cosine(step, 1e-3, 10))
    golden["lstm_lm"] = train_on_text(LstmModel, torch.optim.Adam, 0.25, lambda step: 2e-3)
    golden["gpt_gqa"] = train_on_text(
        Gpt, lambda p: torch.optim.AdamW(p, weight_decay=0.1), 1.0,
        lambda step: cosine(step, 2e-3, 20))
    (HERE / "ports.json").write_text(json.dumps(golden, indent=1) + "\n")
    for name, losses in golden.items():
        print(name, losses[0], losses[-1])


if __name__ == "__main__":
    main()
