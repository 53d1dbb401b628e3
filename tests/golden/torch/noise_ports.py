#!/usr/bin/env python3
"""Trains in torch what examples/vae and gan train with --plain, from the same parameters, on the
same batches and with the same noise, and writes noise_ports.json, the losses that
tests/examples/ports_test.cpp expects. See ports.py."""

import json
import math
import pathlib

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from char_gpt import philox
from ports import BATCH, SEED, STEPS, begin

HERE = pathlib.Path(__file__).parent
HIDDEN, LATENT, NOISE = 128, 8, 16


def rand(step, call, count):
    """Returns the uniform numbers of call `call` in a step, as spmd/functions/random.cpp does."""
    blocks = philox(SEED, call | step << 32, np.arange((count + 3) // 4))
    words = np.stack(blocks, 1).ravel()[:count] >> np.uint64(8)
    return words.astype(np.float64) * 2.0**-24


def randn(step, rows, columns):
    """Returns the numbers of a step's only call."""
    radius = np.sqrt(-2 * np.log(1 - rand(step, 0, rows * columns)))
    angle = 2 * math.pi * rand(step, 1, rows * columns)
    return torch.from_numpy((radius * np.cos(angle)).reshape(rows, columns))


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(64, HIDDEN)
        self.mean, self.log_variance = nn.Linear(HIDDEN, LATENT), nn.Linear(HIDDEN, LATENT)
        self.decode, self.pixels = nn.Linear(LATENT, HIDDEN), nn.Linear(HIDDEN, 64)

    def loss(self, x, noise):
        hidden = F.relu(self.encode(x))
        mu, log_var = self.mean(hidden), self.log_variance(hidden)
        z = mu + torch.exp(log_var / 2) * noise
        logits = self.pixels(F.relu(self.decode(z)))
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = (mu.square() + log_var.exp() - 1 - log_var).sum() / 2
        return (reconstruction + divergence) / len(x)


class Net(nn.Module):
    def __init__(self, size_in, names):
        super().__init__()
        for name in names[:-1]:
            self.add_module(name, nn.Linear(size_in, HIDDEN))
            size_in = HIDDEN
        self.last = names[-1]
        self.add_module(self.last, nn.Linear(HIDDEN, 64 if self.last == "pixels" else 1))

    def forward(self, x):
        x = F.leaky_relu(self.fc2(F.leaky_relu(self.fc1(x), 0.2)), 0.2)
        return getattr(self, self.last)(x)


class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator = Net(NOISE, ["fc1", "fc2", "pixels"])
        self.discriminator = Net(64, ["fc1", "fc2", "logit"])


def judged(logits, real):
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, real))


def train_vae(batches):
    net = Vae()
    begin(net)
    adam = torch.optim.Adam(net.parameters(), lr=2e-3)
    losses = []
    for step, x in enumerate(batches):
        loss = net.loss(x, randn(step, len(x), LATENT))
        adam.zero_grad()
        loss.backward()
        adam.step()
        losses.append(loss.item())
    return losses


def train_gan(batches):
    net = Gan()
    begin(net)
    sides = [list(side.parameters()) for side in (net.discriminator, net.generator)]
    # With a larger rate, a weight whose gradient is about 0 would differ by more than the tolerance,
    # because Adam takes a whole step in either direction.
    adams = [torch.optim.Adam(side, lr=1e-4, betas=(0.5, 0.999)) for side in sides]
    losses = []
    for step, real in enumerate(batches):
        fake = net.generator(randn(step, len(real), NOISE)).sigmoid()
        loss = (judged(net.discriminator(real), 1.0) +
                judged(net.discriminator(fake.detach()), 0.0))
        # Both gradients are computed at the parameters before the step.
        grads = [torch.autograd.grad(loss, sides[0]),
                 torch.autograd.grad(judged(net.discriminator(fake), 1.0), sides[1])]
        for side, of_side, adam in zip(sides, grads, adams):
            for p, grad in zip(side, of_side):
                p.grad = grad
            adam.step()
        losses.append(loss.item())
    return losses


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    rows = np.loadtxt(HERE.parents[2] / "examples/data/digits.csv", delimiter=",")
    images = torch.from_numpy(rows[: STEPS * BATCH, :64].astype(np.float32) / np.float32(16))
    batches = images.double().split(BATCH)
    golden = {"vae": train_vae(batches), "gan": train_gan(batches)}
    (HERE / "noise_ports.json").write_text(json.dumps(golden, indent=1) + "\n")
    for name, losses in golden.items():
        print(name, losses[0], losses[-1])


if __name__ == "__main__":
    main()
