#!/usr/bin/env python3
"""Writes transformer.safetensors: torch's attention and transformer layers, in the form of the
ops of ../torch/make.py. Operands are the layer's parameters by their names, "x" and its other inputs.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 transformer.py.
"""

import math
import pathlib
import sys

import torch
from torch import nn
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "torch"))
from make import Cases, normal, rounded, write  # noqa: E402

BATCH, LENGTH, SIZE, HEADS = 2, 4, 8, 2


def causal(rows=LENGTH, columns=LENGTH):
    return torch.ones(rows, columns, dtype=torch.bool).triu(1)


def layer_case(case, name, layer, call, inputs, index=None):
    """Runs `call(layer, *inputs, index)` with random parameters; the file has their gradients."""
    layer.eval()
    parameters = {key: rounded(0.5 * torch.randn(p.shape)) for key, p in layer.named_parameters()}

    class Caller(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, *given):
            return call(self.layer, *given)

    caller = Caller()

    def function(*operands):
        values = operands[len(inputs) : len(inputs) + len(parameters)]
        state = {"layer." + key: value for key, value in zip(parameters, values)}
        given = operands[: len(inputs)] + operands[len(inputs) + len(parameters) :]
        return nn.utils.stateless.functional_call(caller, state, given)

    extra = {} if index is None else {"index": index}
    case(name, function, **inputs, **parameters, **extra)


def attention_cases(case):
    q, k, v = normal(2, 4, 3, 6), normal(2, 4, 5, 6), normal(2, 4, 5, 4)

    def attention(q, k, v, mask=None, bias=None, scale=None):
        scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        scores = scores if bias is None else scores + bias
        scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1) @ v

    case("attention_mask", lambda q, k, v, i: attention(q, k, v, mask=i.bool()), q=q, k=k, v=v,
         index=torch.tensor([[1, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 1]]))
    case("attention_bias", lambda q, k, v, bias: attention(q, k, v, bias=bias),
         q=q, k=k, v=v, bias=normal(4, 1, 5))
    case("attention_bias_causal",
         lambda q, k, v, bias: attention(q, k, v, ~causal(3, 5), bias, scale=0.3),
         q=q, k=k, v=v, bias=normal(3, 5))
    case("attention_gqa",
         lambda q, k, v: attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)),
         q=q, k=normal(2, 2, 5, 6), v=normal(2, 2, 5, 6))
    case("rope_from", lambda x: rope(x, 7), x=normal(2, 3, 5, 6))


def rope(x, start):
    half = x.shape[-1] // 2
    places = torch.arange(start, start + x.shape[-2])
    angle = torch.outer(places.double(), 100.0 ** (-torch.arange(half) / half))
    first, second = x.chunk(2, -1)
    return torch.cat([first * angle.cos() - second * angle.sin(),
                      second * angle.cos() + first * angle.sin()], -1)


def multi_head_cases(case):
    x = normal(BATCH, LENGTH, SIZE)
    padding = torch.tensor([[0, 0, 0, 0], [0, 0, 1, 1]])

    def layer(**options):
        return nn.MultiheadAttention(SIZE, HEADS, batch_first=True, **options)

    def attend(layer, x, index):
        return layer(x, x, x, key_padding_mask=index.bool(), attn_mask=causal())[0]

    layer_case(case, "self_attention_masks", layer(), attend, {"x": x}, padding)
    layer_case(case, "self_attention_float_mask", layer(bias=False),
               lambda layer, x, mask: layer(x, x, x, attn_mask=mask)[0],
               {"x": x, "mask": normal(BATCH * HEADS, LENGTH, LENGTH)})
    layer_case(case, "cross_attention", layer(),
               lambda layer, x, m: layer(x, m, m)[0], {"x": x, "memory": normal(BATCH, 6, SIZE)})
    layer_case(case, "cross_attention_dims", layer(kdim=6, vdim=10),
               lambda layer, x, k, v, i: layer(x, k, v, key_padding_mask=i.bool())[0],
               {"x": x, "key": normal(BATCH, 4, 6), "value": normal(BATCH, 4, 10)}, padding)

    class Grouped(nn.Module):  # torch has none
        def __init__(self):
            super().__init__()
            self.in_proj_weight = nn.Parameter(torch.zeros(16, SIZE))
            self.in_proj_bias = nn.Parameter(torch.zeros(16))
            self.out_proj = nn.Linear(SIZE, SIZE)

        def forward(self, x):
            q, k, v = F.linear(x, self.in_proj_weight, self.in_proj_bias).split([8, 4, 4], -1)
            q = q.unflatten(-1, (4, 2)).transpose(1, 2)
            k, v = (y.unflatten(-1, (2, 2)).transpose(1, 2).repeat_interleave(2, 1)
                    for y in (k, v))
            scores = q @ k.transpose(-2, -1) / math.sqrt(2)
            y = scores.masked_fill(causal(), -math.inf).softmax(-1) @ v
            return self.out_proj(y.transpose(1, 2).flatten(2))

    layer_case(case, "grouped_attention", Grouped(), lambda layer, x: layer(x), {"x": x})


def transformer_cases(case):
    x, memory = normal(BATCH, LENGTH, SIZE), normal(BATCH, 6, SIZE)
    padding = torch.tensor([[0, 0, 0, 1], [0, 0, 0, 0]])
    options = {"d_model": SIZE, "nhead": HEADS, "dim_feedforward": 12, "batch_first": True}

    def encode(layer, x, index):
        names = ("src_mask",) if isinstance(layer, nn.TransformerEncoderLayer) else ("mask",)
        return layer(x, **{names[0]: causal()}, src_key_padding_mask=index.bool())

    def decode(layer, x, memory, index):
        return layer(x, memory, tgt_mask=causal(), tgt_key_padding_mask=index.bool())

    layer_case(case, "encoder_layer", nn.TransformerEncoderLayer(**options), encode, {"x": x},
               padding)
    layer_case(case, "encoder_layer_norm_first",
               nn.TransformerEncoderLayer(**options, norm_first=True, activation="gelu",
                                          layer_norm_eps=0.1),
               encode, {"x": x}, padding)
    both = {"x": x, "memory": memory}
    layer_case(case, "decoder_layer", nn.TransformerDecoderLayer(**options), decode, both, padding)
    layer_case(case, "decoder_layer_norm_first",
               nn.TransformerDecoderLayer(**options, norm_first=True), decode, both, padding)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(**options), 2, nn.LayerNorm(SIZE),
                                    enable_nested_tensor=False)
    layer_case(case, "encoder", encoder, encode, {"x": x}, padding)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**options), 2)
    layer_case(case, "decoder", decoder, decode, both, padding)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(34)
    CASE = Cases()
    attention_cases(CASE)
    multi_head_cases(CASE)
    transformer_cases(CASE)
    write("transformer", CASE.tensors, FOLDER)
