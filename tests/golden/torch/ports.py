#!/usr/bin/env python3
"""Trains in torch what examples/resnet and examples/vit train with --plain, from the same
parameters on the same batches, and writes ports.json, the losses that
tests/examples/ports_test.cpp expects. See char_gpt.py, whose random numbers it uses.

Of the ResNet's trainings only those can be compared for 100 steps in which no rounding carries a
relu over its kink: with this seed, torch's own losses in float32 and float64 agree to 2e-6, with
others to no more than 0.7."""

import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from char_gpt import uniform

HERE = pathlib.Path(__file__).parent
SEED, STEPS, BATCH = 4, 100, 12
WIDTH = 4  # of the ResNet
SIZE, HEADS, LAYERS, PATCH = 16, 2, 2, 2


def uniform_values(name, p, bound):
    return np.float32(bound) * (2 * uniform(SEED, name, np.arange(p.numel())) - np.float32(1))


def initial(name, p, modules):
    """As the layers of spmd/nn/ have it."""
    owner, kind = name.rpartition(".")[::2]
    module = modules[owner]
    counters = np.arange(p.numel())
    if isinstance(module, (nn.LayerNorm, nn.BatchNorm2d)):
        return np.full(p.numel(), 1.0 if kind == "weight" else 0.0)
    if isinstance(module, nn.Embedding):
        radius = np.sqrt(-2 * np.log(1 - uniform(SEED, name, 2 * counters).astype(np.float64)))
        angle = 2 * math.pi * uniform(SEED, name, 2 * counters + 1).astype(np.float64)
        return (0.02 * radius * np.cos(angle)).astype(np.float32)
    if isinstance(module, nn.MultiheadAttention):
        return uniform_values(name, p, math.sqrt(6 / (4 * SIZE))) if kind == "in_proj_weight" else (
            np.zeros(p.numel()))
    if kind == "class_token" or name.endswith("out_proj.bias"):
        return np.zeros(p.numel())
    fan_in = module.weight[0].numel()
    return uniform_values(name, p, 1 / math.sqrt(fan_in))


def begin(net):
    """Parameters begin as those of weft's layers."""
    modules = dict(net.named_modules())
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(torch.from_numpy(np.asarray(initial(name, p, modules))).view(p.shape))


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
        self.positions = nn.Embedding(count + 1, SIZE)
        self.class_token = nn.Parameter(torch.zeros(1, 1, SIZE))
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(SIZE)
        self.head = nn.Linear(SIZE, 10)

    def forward(self, images):
        tokens = self.patches(images.view(-1, 1, 8, 8)).flatten(2).transpose(1, 2)
        first = self.class_token.expand(len(images), 1, SIZE)
        x = torch.cat([first, tokens], 1) + self.positions.weight
        return self.head(self.norm(self.blocks(x)[:, 0]))


def cosine(step, lr):
    """weft::cosine_schedule with warmup = steps / 10."""
    steps, warmup = STEPS + 1, STEPS // 10
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
    golden["vit"] = train(net, adamw, smoothed, lambda step: cosine(step, 1e-3))
    (HERE / "ports.json").write_text(json.dumps(golden, indent=1) + "\n")
    for name, losses in golden.items():
        print(name, losses[0], losses[-1])


if __name__ == "__main__":
    main()
