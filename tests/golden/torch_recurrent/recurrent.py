#!/usr/bin/env python3
"""Writes recurrent.safetensors: torch.nn's recurrent layers, in the form of the ops of
../torch/make.py.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 recurrent.py. y has all outputs, then
the last h (and c), one after another along time.
"""

import pathlib
import sys

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "torch"))
from make import Cases, normal, write  # noqa: E402

TIME, BATCH, SIZE, HIDDEN = 5, 4, 6, 4
NAMES = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")


def layer(case, name, kind, gates, reverse=False, **options):
    module = kind(SIZE, HIDDEN, **options)

    def run(x, h0, *rest):
        states = rest[:-4]
        for parameter, weights in zip(NAMES, rest[-4:]):
            delattr(module, parameter)
            setattr(module, parameter, weights)  # an attribute, so that gradients reach it
        first = h0.unsqueeze(0)
        first = (first, states[0].unsqueeze(0)) if states else first
        out, last = module(x.flip(0) if reverse else x, first)
        last = torch.cat(last) if states else last
        return torch.cat([out.flip(0) if reverse else out, last])

    cells = {"c0": normal(BATCH, HIDDEN)} if kind is nn.LSTM else {}
    case(name, run, x=normal(TIME, BATCH, SIZE), h0=normal(BATCH, HIDDEN), **cells,
         w_ih=normal(gates * HIDDEN, SIZE), w_hh=normal(gates * HIDDEN, HIDDEN),
         b_ih=normal(gates * HIDDEN), b_hh=normal(gates * HIDDEN))


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(41)
    case = Cases()
    layer(case, "rnn", nn.RNN, 1)
    layer(case, "rnn_relu", nn.RNN, 1, nonlinearity="relu")
    layer(case, "rnn_reversed", nn.RNN, 1, reverse=True)
    layer(case, "lstm", nn.LSTM, 4)
    layer(case, "gru", nn.GRU, 3)
    write("recurrent", case.tensors, FOLDER)


if __name__ == "__main__":
    main()
