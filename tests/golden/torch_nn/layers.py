#!/usr/bin/env python3
"""Writes layers.safetensors: torch's recurrent and convolution layers, in the form of
transformer.safetensors.
The result of a recurrent layer is its output, h_n and c_n flattened, in one row.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 layers.py.
"""

import pathlib
import sys

import torch
from torch import nn

FOLDER = pathlib.Path(__file__).parent
sys.path[:0] = [str(FOLDER.parent / "torch"), str(FOLDER)]
from make import Cases, normal, rounded, write  # noqa: E402
from transformer import layer_case  # noqa: E402

TIME, BATCH, FEATURES, SIZE = 6, 4, 3, 4


def flat(result):
    """Flattens output and h_n, or (output, (h_n, c_n))."""
    output, last = result
    last = last if isinstance(last, tuple) else (last,)
    return torch.cat([y.flatten() for y in (output, *last)])


def recurrent_case(case, name, layer, inputs):
    """Does the same as layer_case(), which doesn't reach the list of weights of torch's layers."""
    layer.eval()
    parameters = {key: rounded(0.5 * torch.randn(p.shape)) for key, p in layer.named_parameters()}

    def function(*operands):
        given = dict(zip(parameters, operands[len(inputs) :]))
        layer._flat_weights = [given[key] for key in layer._flat_weights_names]
        x, *state = operands[: len(inputs)]
        if not state:
            return flat(layer(x))
        return flat(layer(x, tuple(state) if len(state) > 1 else state[0]))

    case(name, function, **inputs, **parameters)


def recurrent_cases(case):
    x = normal(TIME, BATCH, FEATURES)
    for name, kind in (("rnn", nn.RNN), ("gru", nn.GRU), ("lstm", nn.LSTM)):
        recurrent_case(case, name, kind(FEATURES, SIZE), {"x": x})
        both = kind(FEATURES, SIZE, num_layers=2, bidirectional=True, batch_first=True)
        recurrent_case(case, name + "_layers", both, {"x": x.transpose(0, 1).contiguous()})
    recurrent_case(case, "gru_state", nn.GRU(FEATURES, SIZE, bias=False),
                   {"x": x, "h": normal(1, BATCH, SIZE)})
    recurrent_case(case, "lstm_state", nn.LSTM(FEATURES, SIZE, num_layers=2),
                   {"x": x, "h": normal(2, BATCH, SIZE), "c": normal(2, BATCH, SIZE)})


def convolution_cases(case):
    # An operand "weight" would be confused with y's weight: see Cases.
    class Named(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.conv = layer

        def forward(self, x):
            return self.conv(x)

    for name, layer, shape in (
        ("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 8)),
        ("conv2d", nn.Conv2d(4, 2, (3, 1), dilation=2, bias=False), (2, 4, 8, 6)),
        ("conv3d", nn.Conv3d(2, 4, (1, 2, 3), padding=(0, 1, 1)), (2, 2, 3, 4, 4)),
        ("conv_transpose1d", nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1), (2, 4, 6)),
        ("conv_transpose2d",
         nn.ConvTranspose2d(4, 6, (3, 2), stride=2, padding=1, output_padding=1, groups=2),
         (2, 4, 3, 4)),
        ("conv_transpose3d", nn.ConvTranspose3d(2, 2, 2, bias=False), (2, 2, 2, 3, 4)),
    ):
        layer_case(case, name, Named(layer), lambda layer, x: layer(x), {"x": normal(*shape)})


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(35)
    CASE = Cases()
    recurrent_cases(CASE)
    convolution_cases(CASE)
    write("layers", CASE.tensors, FOLDER)
