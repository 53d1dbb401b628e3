#!/usr/bin/env python3
"""Writes schedules.safetensors: torch's learning rates of 20 steps by schedule, and the metrics that
the plateau schedules get.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 schedules.py.
"""

import pathlib
import sys

import numpy as np
import torch
from torch.optim import lr_scheduler as schedulers

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "torch"))
from make import write  # noqa: E402

STEPS = 20


def rates(make, metrics=None):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    schedule = make(optimizer)
    found = []
    for step in range(STEPS):
        if metrics is not None:
            schedule.step(metrics[step])
        found.append(optimizer.param_groups[0]["lr"])
        if metrics is None and step + 1 < STEPS:
            optimizer.step()
            schedule.step()
    return np.array(found)


def one_cycle(**options):
    return lambda o: schedulers.OneCycleLR(o, max_lr=0.4, total_steps=STEPS, **options)


SCHEDULES = {
    "constant": lambda o: schedulers.ConstantLR(o),
    "constant_options": lambda o: schedulers.ConstantLR(o, factor=0.25, total_iters=8),
    "exponential": lambda o: schedulers.ExponentialLR(o, gamma=0.9),
    "multi_step": lambda o: schedulers.MultiStepLR(o, milestones=[3, 7, 15], gamma=0.5),
    "polynomial": lambda o: schedulers.PolynomialLR(o, total_iters=12, power=2.5),
    "cosine_restarts": lambda o: schedulers.CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2,
                                                                         eta_min=0.05),
    "cosine_restarts_even": lambda o: schedulers.CosineAnnealingWarmRestarts(o, T_0=4),
    "one_cycle": one_cycle(),
    "one_cycle_linear": one_cycle(anneal_strategy="linear", pct_start=0.4, div_factor=10,
                                  final_div_factor=100),
    "one_cycle_three_phase": one_cycle(three_phase=True),
}


def plateau(**options):
    return lambda o: schedulers.ReduceLROnPlateau(o, **options)


PLATEAUS = {
    "plateau": plateau(patience=2),
    "plateau_max": plateau(mode="max", factor=0.5, patience=1, threshold=0.02,
                           threshold_mode="abs", cooldown=2, min_lr=0.06),
}


if __name__ == "__main__":
    TENSORS = {name: rates(make) for name, make in SCHEDULES.items()}
    METRICS = np.array([5, 4, 3.9999, 3.5, 3.6, 3.55, 3.52, 3, 3, 3.1, 3.2, 3.3, 2.9999, 2.9998,
                        3, 3.4, 3.1, 3, 2, 2.5]).astype(np.float32).astype(float)
    TENSORS["metrics"] = METRICS
    for name, make in PLATEAUS.items():
        TENSORS[name] = rates(make, METRICS)
    write("schedules", TENSORS, FOLDER)
