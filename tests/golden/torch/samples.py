#!/usr/bin/env python3
"""Writes samples/OP.json: torch's results for small inputs of every op, like those of its own OpInfo
tests: shapes with 0 and 1, scalars, transposed and strided views, every dtype that torch and weft
both have. See tests/unit/spmd/functions/samples_test.cpp.

One sample per line: op, arguments, operands, y, and, if y is floating, the weight of y in the sum
that is differentiated, and the gradients. Operands and weights are multiples of 1/8, which every
floating dtype has exactly. Needs torch 2.15: older versions lack functions of float16 on the CPU,
and have other gradients at kinks."""

import itertools
import json
import math
import pathlib
import random

import torch
from torch.nn import functional as F

INDICES = (torch.int32, torch.int64)
# use_dtypes() sets the dtypes of a pass over all parts.
FLOATS = INTEGERS = NUMBERS = ALL = ()
PASSES = (((torch.float32, torch.float64, torch.bfloat16), INDICES, (torch.bool,)),
          ((torch.float16,), (torch.int8, torch.uint8), ()))
NAMES = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16", torch.float16: "f16",
         torch.int32: "i32", torch.int64: "i64", torch.int8: "i8", torch.uint8: "u8",
         torch.bool: "pred"}
DIGITS = {torch.float32: 9, torch.float64: 15, torch.bfloat16: 6, torch.float16: 6}
SHAPES = ((), (1,), (3,), (0,), (2, 3), (1, 4), (3, 0), (2, 1, 3))

draw = random.Random(7)
samples = {}  # of each op, lines


def use_dtypes(floats, integers, others):
    global FLOATS, INTEGERS, NUMBERS, ALL
    FLOATS, INTEGERS, NUMBERS = floats, integers, floats + integers
    ALL = NUMBERS + others


class Domain:
    """Returns numbers from first to last in steps of 1/8. Integers are whole numbers, which begin at
    0 if the dtype has no sign."""

    def __init__(self, first=-3.0, last=3.0, distinct=False):
        self.first, self.last, self.distinct = first, last, distinct

    def tensor(self, shape, dtype):
        count = math.prod(shape)
        if dtype == torch.bool:
            values = [draw.random() < 0.5 for _ in range(count)]
        elif dtype in INTEGERS:
            up = math.floor(-self.first) if dtype == torch.uint8 and self.first < 0 else 0
            values = [draw.randint(math.ceil(self.first), math.floor(self.last)) + up
                      for _ in range(count)]
        else:
            choices = range(math.ceil(self.first * 8), math.floor(self.last * 8) + 1)
            numbers = draw.sample(choices, count) if self.distinct else [
                draw.choice(choices) for _ in range(count)]
            values = [number / 8 for number in numbers]
        return torch.tensor(values, dtype=dtype).reshape(shape)


def numbers_of(tensor):
    def text(value):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return float(f"{value:.{DIGITS[tensor.dtype]}g}")

    values = tensor.detach().flatten()
    if tensor.dtype in DIGITS:
        return [text(value) for value in values.double().tolist()]
    return [int(value) for value in values.tolist()]


def described(tensor):
    return {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
            "elements": numbers_of(tensor)}


def view_of(kind, tensor):
    """Returns a view of this shape whose elements aren't in order, and the viewed tensor."""
    if kind == "transposed":
        base = tensor.transpose(0, -1).contiguous()
        return base, lambda base: base.transpose(0, -1)
    if kind == "strided":
        base = torch.stack([tensor, tensor], -1).flatten(-2) if tensor.dim() else tensor
        return base, lambda base: base[..., ::2]
    return tensor, lambda base: base


def sample(op, function, operands, args=None, view=None):
    entry = {"op": op, "args": args or {}, "view": view or ""}
    try:
        fill(entry, function, operands, view)
    except (RuntimeError, IndexError, TypeError):
        return  # torch refuses it
    if entry["y"]["dtype"]:
        samples.setdefault(op, []).append(json.dumps(entry, separators=(",", ":")))


def fill(entry, function, operands, view):
    """Adds operands, y and gradients to the entry."""
    bases, views = [], []
    for operand in operands:
        kind = view if operand.dim() > 0 and operand.numel() > 0 else None
        base, see = view_of(kind, operand)
        bases.append(base.clone().requires_grad_(base.is_floating_point()))
        views.append(see)
    y = function(*[see(base) for see, base in zip(views, bases)])
    entry["operands"] = [described(base) for base in bases]
    entry["y"] = described(y) if y.dtype in NAMES else {"dtype": ""}
    floating = [base for base in bases if base.is_floating_point()]
    if y.is_floating_point() and floating:
        weight = entry.get("weight")
        if weight is None:
            weight = Domain().tensor(tuple(y.shape), y.dtype)
        entry["weight"] = described(weight)
        if y.requires_grad:
            (y * weight).sum().backward()
        entry["gradients"] = [
            described(torch.zeros_like(base) if base.grad is None else base.grad)
            for base in floating]


def unary():
    positive, unit = Domain(0.125, 4), Domain(-0.875, 0.875)
    domains = {"log": positive, "sqrt": positive, "rsqrt": positive, "log1p": Domain(-0.75, 3),
               "tan": unit, "exp": unit}
    functions = {
        "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
        "tanh": torch.tanh, "sigmoid": torch.sigmoid, "softplus": F.softplus, "sin": torch.sin,
        "cos": torch.cos, "tan": torch.tan, "log1p": torch.log1p, "expm1": torch.expm1,
        "erf": torch.erf, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
        "sign": torch.sign, "abs": torch.abs, "neg": torch.neg, "relu": F.relu, "gelu": F.gelu,
        "silu": F.silu, "leaky_relu": F.leaky_relu, "elu": F.elu, "mish": F.mish,
        "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "logical_not": torch.logical_not,
        "isfinite": torch.isfinite, "stop_gradient": lambda x: x.detach(),
    }
    for (op, function), dtype, shape in itertools.product(functions.items(), ALL, SHAPES):
        x = domains.get(op, Domain()).tensor(shape, dtype)
        sample(op, function, [x])
        if len(shape) == 2:
            sample(op, function, [x], view="transposed")
            sample(op, function, [x], view="strided")


def binary():
    functions = {
        "add": torch.add, "subtract": torch.sub, "multiply": torch.mul, "divide": torch.div,
        "maximum": torch.maximum, "minimum": torch.minimum, "atan2": torch.atan2,
        "fmod": torch.fmod, "remainder": torch.remainder, "pow": torch.pow, "equal": torch.eq,
        "not_equal": torch.ne, "less": torch.lt, "less_equal": torch.le, "greater": torch.gt,
        "greater_equal": torch.ge, "logical_and": torch.logical_and,
        "logical_or": torch.logical_or, "logical_xor": torch.logical_xor,
    }
    shapes = (((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 3), (2, 3)),
              ((0,), (1,)), ((3, 0), (0,)), ((2, 1, 3), (4, 1)))
    for (op, function), dtype, (a, b) in itertools.product(functions.items(), ALL, shapes):
        left = Domain(0.125, 3) if op == "pow" else Domain()
        right = Domain(0.125, 3) if op in ("divide", "fmod", "remainder", "pow") else Domain()
        operands = [left.tensor(a, dtype), right.tensor(b, dtype)]
        sample(op, function, operands)
        if a == (2, 3):
            sample(op, function, operands, view="transposed")


def choices():
    for dtype, (a, b) in itertools.product(ALL, (((), ()), ((3,), (3,)), ((2, 3), (3,)), ((0,), ()),
                                                 ((2, 1), (1, 3)))):
        condition = Domain().tensor((2, 1) if len(a) == 2 else a, torch.bool)
        sample("where", torch.where, [condition, Domain().tensor(a, dtype),
                                      Domain().tensor(b, dtype)])
    for dtype, shape in itertools.product(NUMBERS, SHAPES):
        x = Domain().tensor(shape, dtype)
        for args in ({"min": -1, "max": 2}, {"min": 0}, {"max": 1}):
            if dtype == torch.uint8 and args.get("min", 0) < 0:
                continue  # the dtype doesn't have this number
            sample("clamp", lambda x, a=args: torch.clamp(x, **a), [x], args)
        mask = Domain().tensor(shape, torch.bool)
        sample("masked_fill", lambda x, m: x.masked_fill(m, 2), [x, mask])


def reductions():
    def over(function, both):
        def call(x, dims=None, keepdim=False):
            if dims is None:
                return function(x)
            return function(x, dims if both else dims[0], keepdim=keepdim)
        return call

    table = (
        ("sum", torch.sum, True, ALL), ("prod", torch.prod, False, NUMBERS),
        ("mean", torch.mean, True, FLOATS), ("amax", torch.amax, True, NUMBERS),
        ("amin", torch.amin, True, NUMBERS), ("any", torch.any, False, ALL),
        ("all", torch.all, False, ALL), ("var", torch.var, True, FLOATS),
        ("stddev", torch.std, True, FLOATS), ("norm", torch.linalg.vector_norm, True, FLOATS),
        ("logsumexp", torch.logsumexp, True, FLOATS), ("argmax", torch.argmax, False, NUMBERS),
        ("argmin", torch.argmin, False, NUMBERS),
    )
    for (op, function, both, dtypes), shape in itertools.product(table, SHAPES):
        for dtype in dtypes:
            for dims, keepdim in ((None, False), ([0], False), ([-1], True), ([0, -1], False)):
                if dims and len(dims) > 1 and (not both or len(shape) < 2):
                    continue
                if op == "logsumexp" and dims is None:
                    continue
                distinct = op in ("amax", "amin", "argmax", "argmin")
                x = Domain(-3, 3, distinct).tensor(shape, dtype)
                args = {} if dims is None else {"dims": dims, "keepdim": keepdim}
                call = over(function, both)
                for view in (None, "transposed") if len(shape) == 2 and dims == [0] else (None,):
                    sample(op, lambda x, a=args, c=call: c(x, **a), [x], args, view)


def moved():
    table = (
        ("reshape", lambda x: x.reshape(-1), {}), ("transpose", lambda x: x.transpose(0, -1), {}),
        ("unsqueeze", lambda x, dim: x.unsqueeze(dim), {"dim": -1}),
        ("unsqueeze", lambda x, dim: x.unsqueeze(dim), {"dim": 0}),
        ("squeeze", lambda x: x.squeeze(), {}), ("squeeze", lambda x, dim: x.squeeze(dim), {"dim": 0}),
        ("flatten", lambda x: x.flatten(), {}), ("flip", lambda x, dim: x.flip(dim), {"dim": 0}),
        ("roll", lambda x, dim: x.roll(2, dim), {"dim": 0}),
        ("tril", torch.tril, {}), ("triu", torch.triu, {}),
        ("slice", lambda x: x[1::2], {}), ("narrow", lambda x: x.narrow(0, 1, 1), {}),
        ("cat", lambda x: torch.cat([x, x], -1), {}), ("stack", lambda x: torch.stack([x, x]), {}),
        ("split", lambda x: x.split(2, -1)[-1], {}), ("chunk", lambda x: x.chunk(2, 0)[0], {}),
        ("repeat", lambda x: x.repeat(*([2] * max(x.dim(), 1))), {}),
        ("broadcast_to", lambda x: x.expand(2, *x.shape), {}), ("pad", lambda x: F.pad(x, (1, 2)), {}),
    )
    for (op, function, args), dtype, shape in itertools.product(table, ALL, SHAPES):
        x = Domain().tensor(shape, dtype)
        sample(op, lambda x, f=function, a=args: f(x, **a), [x], args)
        if len(shape) == 2:
            sample(op, lambda x, f=function, a=args: f(x, **a), [x], args, "transposed")


def along():
    table = (
        ("softmax", lambda x, dim: F.softmax(x, dim), FLOATS),
        ("log_softmax", lambda x, dim: F.log_softmax(x, dim), FLOATS),
        ("cumsum", torch.cumsum, NUMBERS), ("cumprod", torch.cumprod, NUMBERS),
        ("sort", lambda x, dim: x.sort(dim)[0], NUMBERS),
        ("argsort", lambda x, dim: torch.sort(x, dim=dim, stable=True)[1].int(), NUMBERS),
        ("topk", lambda x, dim: x.topk(1, dim)[0], NUMBERS),
    )
    for (op, function, dtypes), shape in itertools.product(table, SHAPES):
        for dtype, dim in itertools.product(dtypes, (0, -1)):
            x = Domain(-3, 3, op in ("sort", "topk") and dtype in FLOATS).tensor(shape, dtype)
            for view in (None, "transposed") if len(shape) == 2 else (None,):
                sample(op, lambda x, f=function, d=dim: f(x, dim=d), [x], {"dim": dim}, view)


def indexed():
    for dtype, integer in itertools.product(NUMBERS, INDICES):
        x = Domain().tensor((3, 4), dtype)
        index = torch.tensor([[2, 0, 1, 1], [0, 0, 2, 1]], dtype=integer)
        sample("gather", lambda x, i: x.gather(0, i.long()), [x, index])
        sample("scatter_add", lambda x, i, s: x.scatter_add(0, i.long(), s),
               [x, index, Domain().tensor((2, 4), dtype)])
        sample("index_select", lambda x, i: x.index_select(0, i), [x, index[0]])
        sample("index_select", lambda x, i: x.index_select(0, i), [x, index[0, :0]])
        sample("one_hot", lambda i: F.one_hot(i.long(), 4).int(), [index])
        sample("embedding", lambda x, i: F.embedding(i, x), [x, index])


def products():
    shapes = (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 3), (3, 1)),
              ((0, 3), (3, 2)), ((2, 0), (0, 2)), ((2, 2, 3), (3, 2)), ((2, 1, 2, 3), (4, 3, 1)),
              ((0, 2, 3), (0, 3, 2)), ((0,), (0,)))
    for dtype, (a, b) in itertools.product(NUMBERS, shapes):
        operands = [Domain(-1, 1).tensor(a, dtype), Domain(-1, 1).tensor(b, dtype)]
        sample("matmul", torch.matmul, operands)
        if len(a) == len(b) == 2:
            sample("matmul", torch.matmul, operands, view="transposed")
            sample("linear", lambda x, w: F.linear(x, w.t()), operands)
            sample("einsum", lambda x, y: torch.einsum("ij,jk->ki", x, y), operands)


def windows():
    for dtype, batch in itertools.product(FLOATS, (0, 1, 2)):
        x = Domain(-1, 1, batch < 2 and dtype != torch.bfloat16).tensor((batch, 1, 4, 4), dtype)
        weight = Domain(-1, 1).tensor((2, 1, 3, 2), dtype)
        back = Domain(-1, 1).tensor((1, 2, 3, 2), dtype)
        sample("conv2d", F.conv2d, [x, weight])
        sample("conv_transpose2d", F.conv_transpose2d, [x, back])
        sample("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [x])
        sample("max_pool2d", lambda x: F.max_pool2d(x, 2), [x])
        sample("adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, 3), [x])
        sample("interpolate", lambda x: F.interpolate(x, scale_factor=2), [x])
        sample("interpolate_linear",
               lambda x: F.interpolate(x, size=(3, 5), mode="bilinear", align_corners=False), [x])


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    for dtypes in PASSES:
        use_dtypes(*dtypes)
        for part in (unary, binary, choices, reductions, moved, along, indexed, products, windows):
            part()
    folder = pathlib.Path(__file__).with_name("samples")
    for op, lines in samples.items():
        (folder / f"{op}.json").write_text("\n".join(lines) + "\n")
    print(folder.name, len(samples), "ops", sum(map(len, samples.values())), "samples")


if __name__ == "__main__":
    main()
