#!/usr/bin/env python3
"""Writes train_optimizers.safetensors in the form of train_MODEL of ../torch/make.py, for the
optimizers that make.py doesn't have.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 optimizers.py. Optimizers that torch
1.13 has are torch's own. The others are written here from the papers, and from torch if a later
version has them.
"""

import math
import pathlib
import sys

import torch

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "torch"))
import make  # noqa: E402


class Written(torch.optim.Optimizer):
    """`update(p, g, state, t, group)` returns the new parameter in step t = 1, 2, ..."""

    def __init__(self, params, update, **defaults):
        super().__init__(params, defaults)
        self.update = update

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["t"] = state.get("t", 0) + 1
                p.copy_(self.update(p, p.grad, state, state["t"], group))


def average(state, name, value, keep):
    state[name] = keep * state.get(name, torch.zeros_like(value)) + (1 - keep) * value
    return state[name]


def lion(p, g, state, t, o):
    """Implements X. Chen et al. (2023), algorithm 2."""
    before = state.get("m", torch.zeros_like(p))
    direction = (o["beta1"] * before + (1 - o["beta1"]) * g).sign()
    average(state, "m", g, o["beta2"])
    return p - o["lr"] * (direction + o["decay"] * p)


def lamb(p, g, state, t, o):
    """Implements Y. You et al. (2020), algorithm 2, with the identity as phi."""
    m = average(state, "m", g, o["beta1"]) / (1 - o["beta1"] ** t)
    v = average(state, "v", g * g, o["beta2"]) / (1 - o["beta2"] ** t)
    direction = m / (v.sqrt() + o["eps"]) + o["decay"] * p
    return p - o["lr"] * p.norm() / direction.norm() * direction


def adafactor(p, g, state, t, o):
    """Implements N. Shazeer, M. Stern (2018), with the constants of torch.optim.Adafactor."""
    eps1, keep = 2.0**-23, 1 - t**-0.8
    squares = g * g
    if p.dim() > 1:
        rows = average(state, "rows", squares.mean(-1, keepdim=True), keep)
        columns = average(state, "columns", squares.mean(-2, keepdim=True), keep)
        variance = rows @ columns / rows.mean(-2, keepdim=True).clamp(min=eps1)
    else:
        variance = average(state, "variance", squares, keep)
    step = g / variance.clamp(min=eps1**2).sqrt()
    step = step / max(1.0, step.norm() / math.sqrt(p.numel()) / o["d"])
    size = max(o["eps2"], p.norm() / math.sqrt(p.numel())) * min(o["lr"], t**-0.5)
    return p * (1 - o["lr"] * o["decay"]) - size * step


def muon(p, g, state, t, o):
    """Implements K. Jordan et al. (2024), with the constants of torch.optim.Muon."""
    m = average(state, "m", g, o["momentum"])
    x = o["momentum"] * m + (1 - o["momentum"]) * g if o["nesterov"] else m
    is_tall = p.shape[0] > p.shape[1]
    x = x.T if is_tall else x
    x = x / x.norm()
    a, b, c = 3.4445, -4.7750, 2.0315
    for _ in range(5):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    x = x.T if is_tall else x
    if o["match"]:
        factor = 0.2 * math.sqrt(max(p.shape))
    else:
        factor = math.sqrt(max(1, p.shape[0] / p.shape[1]))
    return p * (1 - o["lr"] * o["decay"]) - o["lr"] * factor * x


class Matrices(make.nn.Module):
    """Has no biases, because Muon doesn't accept them."""

    def __init__(self):
        super().__init__()
        self.fc1 = make.nn.Linear(12, 16, bias=False)
        self.fc2 = make.nn.Linear(16, 8, bias=False)
        self.fc3 = make.nn.Linear(8, 5, bias=False)

    forward = make.Mlp.forward


ADAM = {"lr": 1e-2, "betas": (0.8, 0.99), "eps": 1e-4}
BETAS = {"beta1": 0.8, "beta2": 0.99}
OPTIMIZERS = {
    "dampening": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.4),
    "maximize": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, maximize=True),
    "amsgrad": lambda p: torch.optim.Adam(p, amsgrad=True, weight_decay=0.1, **ADAM),
    "adamw_amsgrad": lambda p: torch.optim.AdamW(
        p, amsgrad=True, maximize=True, weight_decay=0.1, **ADAM
    ),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, alpha=0.9, eps=1e-4, weight_decay=0.1),
    "rmsprop_centered": lambda p: torch.optim.RMSprop(
        p, lr=1e-2, alpha=0.9, eps=1e-3, momentum=0.8, centered=True
    ),
    "adagrad": lambda p: torch.optim.Adagrad(
        p, lr=0.05, lr_decay=0.3, weight_decay=0.1, initial_accumulator_value=0.01
    ),
    "lion": lambda p: Written(p, lion, lr=1e-2, decay=0.1, **BETAS),
    "lamb": lambda p: Written(p, lamb, lr=1e-2, eps=1e-4, decay=0.1, **BETAS),
    "adafactor": lambda p: Written(p, adafactor, lr=0.2, eps2=1e-3, d=1, decay=0.1),
}
MUON = {
    "muon": lambda p: Written(p, muon, lr=0.05, decay=0.1, momentum=0.9, nesterov=True,
                              match=False),
    "muon_adamw": lambda p: Written(p, muon, lr=0.05, decay=0, momentum=0.9, nesterov=False,
                                    match=True),
}


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    for name, model, chosen in (
        ("optimizers", make.Mlp, OPTIMIZERS), ("matrices", Matrices, MUON)
    ):
        optimizers = {k: lambda m, of=of: of(m.parameters()) for k, of in chosen.items()}
        make.train(name, model, lambda: make.classes(12), optimizers, FOLDER)
