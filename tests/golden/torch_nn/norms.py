#!/usr/bin/env python3
"""Writes norms.safetensors and train_norms.safetensors: torch's normalization layers.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 norms.py. The first file has the form of
the ops of make.py. The second has x and labels (one entry per step), the initial parameter.NAME and
buffer.NAME, and loss (per step), after.NAME and logits in evaluation after the last step.
"""

import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "torch"))
from make import Cases, classes, normal, rounded, write  # noqa: E402


def norm_cases():
    case = Cases()
    torch.manual_seed(31)

    def batch_norm(x, scale, bias):
        return F.batch_norm(x, None, None, scale, bias, training=True)

    affine = {"scale": normal(4), "bias": normal(4)}
    case("batch_norm1d", batch_norm, x=normal(6, 4), **affine)
    case("batch_norm1d_of_lines", batch_norm, x=normal(2, 4, 6), **affine)
    case("batch_norm2d", batch_norm, x=normal(2, 4, 2, 6), **affine)
    case("batch_norm2d_without_weights", lambda x: batch_norm(x, None, None), x=normal(2, 4, 2, 6))
    case("group_norm", lambda x, s, b: F.group_norm(x, 2, s, b), x=normal(2, 4, 2, 6), **affine)
    case("group_norm_of_rows", lambda x, s, b: F.group_norm(x, 2, s, b), x=normal(6, 4), **affine)
    case("group_norm_eps", lambda x: F.group_norm(x, 1, eps=0.5), x=normal(2, 4, 6))
    case("instance_norm1d", lambda x, s, b: F.instance_norm(x, None, None, s, b),
         x=normal(2, 4, 6), **affine)
    case("instance_norm2d", lambda x: F.instance_norm(x), x=normal(2, 4, 2, 6))
    write("norms", case.tensors, FOLDER)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4, momentum=0.3)
        self.gn = nn.GroupNorm(2, 4)
        self.instance = nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
        self.fc = nn.Linear(32, 8)
        self.mean = nn.BatchNorm1d(8, momentum=None)
        self.plain = nn.BatchNorm1d(8, affine=False, track_running_stats=False)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = self.gn(F.relu(self.bn(self.conv(x))))
        x = F.avg_pool2d(self.instance(torch.tanh(x)) * x, 2)
        x = torch.tanh(self.mean(self.fc(x.flatten(1))))
        return self.head(self.plain(x * x))


def train_norms():
    torch.manual_seed(32)
    model = Net()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(rounded(p + 0.1 * torch.randn_like(p)))
    x, labels = classes(2, 4, 8)
    tensors = {"x": x, "labels": labels}
    tensors.update({"parameter." + k: v.detach().clone() for k, v in model.named_parameters()})
    tensors.update({"buffer." + k: v.clone() for k, v in model.named_buffers()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(x.shape[0]):
        loss = F.cross_entropy(model(x[step]), labels[step])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    tensors["loss"] = np.array(losses)
    tensors.update({"after." + k: v.clone() for k, v in model.state_dict().items()})
    model.eval()
    tensors["logits"] = model(x[0])
    write("train_norms", tensors, FOLDER)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    norm_cases()
    train_norms()
