#!/usr/bin/env python3
"""Writes edges.json: samples in the form of samples.py, with numbers at which functions change: NaN,
infinities, zeros of both signs, kinks, ties, the ends of integers, and means over many numbers of
16 bits. See tests/unit/chips/cpu/edges_test.cpp and
tests/unit/spmd/functions/samples_test.cpp.

Of elements that repeat with a period of one or two, only one period is written."""

import json
import math
import pathlib

import torch
from torch.nn import functional as F

import samples

NAN, INF = math.nan, math.inf
HALVES = (torch.bfloat16, torch.float16)
FLOATS = (torch.float32, *HALVES)
REALS = (torch.float32, torch.float64)
INTEGERS = (torch.int8, torch.uint8, torch.int32, torch.int64)
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0]

lines = []


def compact(entry):
    elements = entry["elements"]
    for period in (1, 2):
        first = elements[:period]
        if len(elements) > 16 and elements == (first * len(elements))[:len(elements)]:
            entry["elements"] = first
            return


def edge(op, function, operands, args=None):
    """Adds a weight of 1, and of 2 for every other element."""
    entry = {"op": op, "args": args or {}, "view": ""}
    y = function(*operands)
    if y.is_floating_point():
        count = y.numel()
        weight = torch.ones(count)
        if count > 1:
            weight[1::2] = 2
        entry["weight"] = weight.reshape(y.shape).to(y.dtype)
    samples.fill(entry, function, operands, None)
    for described in (*entry["operands"], entry["y"], *entry.get("gradients", ())):
        compact(described)
    lines.append(json.dumps(entry, separators=(",", ":")))


def unary():
    kinks = [*SPECIAL, 3.0, -3.0, 6.0, 0.5, 2.0]
    functions = {
        "relu": F.relu, "leaky_relu": F.leaky_relu, "elu": F.elu, "hardsigmoid": F.hardsigmoid,
        "hardswish": F.hardswish, "gelu": F.gelu, "silu": F.silu, "mish": F.mish,
        "softplus": F.softplus, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "abs": torch.abs,
        "sign": torch.sign, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
        "rsqrt": torch.rsqrt, "log1p": torch.log1p, "expm1": torch.expm1, "erf": torch.erf,
        "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "square": torch.square,
        "isfinite": torch.isfinite, "neg": torch.neg, "tan": torch.tan,
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    }
    for op, function in functions.items():
        edge(op, function, [torch.tensor(kinks)])
    activations()
    for op in ("relu", "hardswish", "hardsigmoid", "leaky_relu", "elu"):
        for dtype in HALVES:
            edge(op, functions[op], [torch.tensor(kinks, dtype=dtype)])
    for args in ({"min": -1, "max": 2}, {"min": 0}, {"max": 1}, {"min": 2, "max": -1}):
        for dtype in FLOATS:
            x = torch.tensor([*kinks, -2.0, 1.5], dtype=dtype)
            edge("clamp", lambda x, a=args: torch.clamp(x, **a), [x], args)
    for exponent in (-1, 0, 0.5, 1, 2, 3, -0.5):  # torch's root of -infinity is NaN; C's pow isn't
        x = torch.tensor([x for x in kinks if x != -INF])
        edge("pow_number", lambda x, e=exponent: x ** e, [x], {"p": exponent})


def activations():
    functions = {
        "celu": lambda x: F.celu(x, 1.5), "selu": F.selu, "hardtanh": F.hardtanh,
        "relu6": F.relu6, "threshold": lambda x: F.threshold(x, 0.5, -2.0),
        "hardshrink": F.hardshrink, "softshrink": F.softshrink, "tanhshrink": F.tanhshrink,
        "softsign": F.softsign, "logsigmoid": F.logsigmoid,
    }
    kinks = [*SPECIAL, 6.0, -6.0, 0.5, -0.5, 0.25, -0.25, 2.0, -2.0, 100.0, -100.0]
    for dtype in (*REALS, *HALVES):
        x = torch.tensor(kinks, dtype=dtype)
        for op, function in functions.items():
            edge(op, function, [x])
        rows = torch.tensor([[[*kinks[:8]], [*kinks[8:16]]]], dtype=dtype)
        edge("prelu", F.prelu, [rows, torch.tensor([0.25], dtype=dtype)])
        edge("prelu", F.prelu, [rows, torch.tensor([-0.5, 2.0], dtype=dtype)])
        for dim in (0, -1):
            halves = torch.tensor(kinks[1:] if dim == 0 else [kinks[3:7], kinks[7:11]], dtype=dtype)
            edge("glu", lambda x, d=dim: F.glu(x, d), [halves], {"dim": dim})
        finite = torch.tensor([kinks[3:7], kinks[7:11]], dtype=dtype)
        for dim in (0, 1):
            edge("softmin", lambda x, d=dim: F.softmin(x, d), [finite], {"dim": dim})


def binary():
    a = [NAN, 1, 1, 2, 0.0, INF, -INF, INF, NAN, 0, 3, -3]
    b = [1, NAN, 1, 1, -0.0, INF, INF, 1, NAN, 0, -3, -3]
    for op, function in (("maximum", torch.maximum), ("minimum", torch.minimum),
                         ("atan2", torch.atan2), ("equal", torch.eq), ("less", torch.lt),
                         ("greater_equal", torch.ge), ("not_equal", torch.ne)):
        edge(op, function, [torch.tensor(a), torch.tensor(b)])
    for op, function in (("clamp_below", lambda x, b: torch.clamp(x, min=b)),
                         ("clamp_above", lambda x, b: torch.clamp(x, max=b))):
        edge(op, function, [torch.tensor(a), torch.tensor(b)])
    base = [0, 0, 0, 0, 0, -2, -2, INF, INF, NAN, 1, 2, 2, 0.5]
    exponent = [-1, 0, 1, 0.5, 2, 2, -1, 0, -1, 0, NAN, INF, -INF, INF]
    edge("pow", torch.pow, [torch.tensor(base, dtype=torch.float32),
                            torch.tensor(exponent, dtype=torch.float32)])
    dividend = [5, -3, INF, -5, 5, 0, -0.0, 7, -7, 3e3, 1, NAN, -7, 7, -3, 6, -6, 1e30]
    divisor = [0, INF, 2, 0, -2, 0, 3, INF, -.1, 1e-3, .1, 1, 2, -2, -INF, 3, 3, 7]
    for dtype in REALS:
        x = torch.tensor(dividend, dtype=dtype)
        y = torch.tensor(divisor, dtype=dtype)
        edge("floor_divide", lambda x, y: torch.floor_divide(x, y).detach(), [x, y])
        edge("remainder_value", lambda x, y: torch.remainder(x, y).detach(), [x, y])
        edge("fmod_value", lambda x, y: torch.fmod(x, y).detach(), [x, y])
    for dtype in HALVES:
        x = torch.tensor([5, -3, 1000, -7, 1, 6.5], dtype=dtype)
        y = torch.tensor([0, INF, 3, 2, .1, -2], dtype=dtype)
        edge("floor_divide", lambda x, y: torch.floor_divide(x, y).detach(), [x, y])
    for dtype in INTEGERS:
        ends = torch.iinfo(dtype)
        least = ends.min
        small = -2 if least < 0 else 2
        if dtype == torch.int64:  # samples have doubles
            ends, least = torch.iinfo(torch.int32), -2 ** 53
        x = torch.tensor([ends.max, least, least, ends.max, 7, least, ends.max, 7, 0, 100],
                         dtype=dtype)
        y = torch.tensor([small, -1 if least < 0 else 1, 1, 1, 2, 2, ends.max, small, small,
                          ends.max], dtype=dtype)
        for op, function in (("floor_divide", torch.floor_divide), ("fmod", torch.fmod),
                             ("remainder", torch.remainder), ("maximum", torch.maximum)):
            edge(op, function, [x, y])
        edge("floor_divide_number", lambda x: torch.floor_divide(x, 3), [x], {"by": 3})
        edge("remainder_number", lambda x: torch.remainder(x, 3), [x], {"by": 3})
        if least < 0:
            edge("floor_divide_number", lambda x: torch.floor_divide(x, -2), [x], {"by": -2})
            edge("remainder_number", lambda x: torch.remainder(x, -2), [x], {"by": -2})


def reductions():
    rows = torch.tensor([[1, 3, 3, 2], [1, 1, 1, 1], [-INF, -INF, INF, 0], [0.0, -0.0, 5, 5]])
    for op, function in (("amax", torch.amax), ("amin", torch.amin)):
        for dtype in FLOATS:
            edge(op, lambda x, f=function: f(x, 1), [rows.to(dtype)], {"dims": [1]})
        edge(op, lambda x, f=function: f(x, 0), [rows], {"dims": [0]})
        # The gradient of torch.amax of a NaN is NaN; that of torch.max is shared, as weft's.
        whole = torch.max if op == "amax" else torch.min
        edge(op, whole, [torch.tensor([1, NAN, 3, NAN])])
    nans = torch.tensor([[NAN, 1, INF, -INF], [2, NAN, NAN, 1]])
    for op, function in (("argmax", torch.argmax), ("argmin", torch.argmin)):
        edge(op, lambda x, f=function: f(x, 1), [nans], {"dims": [1]})
    edge("sort", lambda x: x.sort(1)[0], [nans], {"dim": 1})
    edge("topk", lambda x: x.topk(1, 1)[0], [nans], {"dim": 1})
    for x in ([-INF, -INF], [INF, 1], [INF, INF], [-INF, 1], [NAN, 1]):
        edge("logsumexp", lambda x: torch.logsumexp(x, 0), [torch.tensor(x)], {"dims": [0]})
    for p in (1, 2, 3, INF, 0):
        for x in ([0, 0], [0, -2, 2]):
            edge("norm_p", lambda x, p=p: torch.linalg.vector_norm(x, p),
                 [torch.tensor(x, dtype=torch.float32)], {"p": "inf" if p == INF else p})
    edge("stddev", torch.std, [torch.full((3,), 2.0)])
    for op, function in (("cumprod", torch.cumprod), ("cumsum", torch.cumsum)):
        for x in ([2, 0, 3, 0, 5], [-0.0, 2, 3], [1, 2, -3]):
            edge(op, lambda x, f=function: f(x, 0), [torch.tensor(x, dtype=torch.float32)],
                 {"dim": 0})
    edge("cumprod_value", lambda x: torch.cumprod(x, 0).detach(), [torch.tensor([INF, 1, NAN, 2])],
         {"dim": 0})
    edge("cumsum", lambda x: torch.cumsum(x, 0), [torch.tensor([INF, 1, -INF, 2])], {"dim": 0})
    for x in ([2, 0, 3], [0, 0, 3], [NAN, 2]):
        edge("prod", torch.prod, [torch.tensor(x, dtype=torch.float32)])
    for x in ([INF, 1], [-INF, 1], [NAN, 1], [-INF, -INF]):
        for op, function in (("softmax", F.softmax), ("log_softmax", F.log_softmax)):
            edge(op, lambda x, f=function: f(x, 0), [torch.tensor(x)], {"dim": 0})


def many():
    """Adds sums that don't fit in 16 bits, and means that do."""
    sizes = ((torch.float16, 100000, 1.0), (torch.bfloat16, 600, 1.0), (torch.float16, 300, 300.0))
    for dtype, count, value in sizes:
        x = torch.full((count,), value, dtype=dtype)
        edge("mean", torch.mean, [x])
        edge("norm", torch.linalg.vector_norm, [x])
        edge("logsumexp", lambda x: torch.logsumexp(x, 0), [x], {"dims": [0]})
        edge("mse_loss", F.mse_loss, [torch.ones_like(x) * 2, torch.ones_like(x)])
        edge("l1_loss", F.l1_loss, [x, torch.zeros_like(x)])
        edge("smooth_l1_loss", F.smooth_l1_loss, [x, torch.zeros_like(x)])
        edge("huber_loss", F.huber_loss, [x, torch.zeros_like(x)])
        edge("mean", lambda x: torch.mean(x, 0), [x.reshape(-1, 2)], {"dims": [0]})
    for dtype in HALVES:
        image = torch.full((1, 1, 64, 64), 100.0, dtype=dtype)
        edge("avg_pool_64", lambda x: F.avg_pool2d(x, 64), [image])
        edge("adaptive_avg_pool_1", lambda x: F.adaptive_avg_pool2d(x, 1), [image])
        steps = torch.arange(1, 301, dtype=torch.float32).to(dtype)
        edge("mean", torch.mean, [steps])
        edge("var", torch.var, [steps])
        edge("stddev", torch.std, [steps])
        edge("mse_loss", F.mse_loss, [steps, torch.zeros_like(steps)]
             if dtype == torch.bfloat16 else [steps / 8, torch.zeros_like(steps)])


def losses():
    for op, function in (("l1_loss", F.l1_loss), ("smooth_l1_loss", F.smooth_l1_loss),
                         ("huber_loss", F.huber_loss)):
        edge(op + "_sum", lambda x, y, f=function: f(x, y, reduction="sum"),
             [torch.tensor([1.0, -1, INF, 2, 0, -INF, 0.5]), torch.zeros(7)])
    edge("mse_loss_sum", lambda x, y: F.mse_loss(x, y, reduction="sum"),
         [torch.tensor([1.0, INF, 0]), torch.tensor([0, 0, 0.0])])
    edge("bce_logits_sum",
         lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach(), reduction="sum"),
         [torch.tensor([0.0, 100, -100, INF, -INF, 1e30]), torch.tensor([1.0, 1, 0, 0.5, 0.5, 0])])


def windows():
    x = torch.tensor([[[[NAN, 1, 2, 1], [3, 3, 4, 4], [0, 0, -1, NAN], [0, 0, -INF, -INF]]]])
    for dtype in FLOATS:
        edge("max_pool2d", lambda x: F.max_pool2d(x, 2), [x.to(dtype)])
        edge("max_pool2d_padded", lambda x: F.max_pool2d(x, 3, 2, 1), [x.to(dtype)])
    edge("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [x])
    edge("normalize", F.normalize, [torch.tensor([[3.0, 4], [0, 0], [1, 0]])])


def main():
    torch.set_num_threads(1)
    for part in (unary, binary, reductions, many, losses, windows):
        part()
    path = pathlib.Path(__file__).with_name("edges.json")
    path.write_text("\n".join(lines) + "\n")
    print(path.name, len(lines), "samples", path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
