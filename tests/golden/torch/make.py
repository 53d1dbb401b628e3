#!/usr/bin/env python3
"""Writes the golden files of this folder: torch's results for tests/support/torch_golden.hpp.

Needs Debian's python3-torch and python3-numpy; run it as /usr/bin/python3 make.py. All is computed
in float64, from numbers that float32 has exactly, and stored as float32 or int32, one safetensors
file for each model and one for the single operations:
  train_MODEL: x, labels (one entry per step), parameter.NAME as it is at first, and for each
    optimizer OPTIMIZER.loss, OPTIMIZER.norm (where gradients are clipped) and
    OPTIMIZER.parameter.NAME after the last step
  ops, tensor_ops: CASE.NAME for each operand, CASE.y = f(operands), and where y is floating
    CASE.weight of y in the sum whose gradient CASE.grad.NAME is
"""

import json
import math
import pathlib
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

STEPS = 3
BATCH = 8
HERE = pathlib.Path(__file__).parent


def write(name, tensors, folder=HERE):
    """Writes the safetensors format: the header's size, the header as JSON, the elements."""
    header, elements = {}, b""
    for key, tensor in tensors.items():
        array = np.asarray(tensor.detach() if torch.is_tensor(tensor) else tensor)
        floating = array.dtype.kind == "f"
        data = array.astype("<f4" if floating else "<i4").tobytes()
        begin = len(elements)
        header[key] = {
            "dtype": "F32" if floating else "I32",
            "shape": list(array.shape),
            "data_offsets": [begin, begin + len(data)],
        }
        elements += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = folder / (name + ".safetensors")
    path.write_bytes(struct.pack("<Q", len(text)) + text + elements)
    print(path.name, path.stat().st_size, "bytes")


def rounded(tensor):
    """Rounds to numbers that float32 has."""
    return tensor.float().double()


def normal(*shape):
    return rounded(torch.randn(shape))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 16)
        self.fc2 = nn.Linear(16, 8)
        self.fc3 = nn.Linear(8, 5)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(torch.tanh(self.fc1(x)))))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 6, (3, 5), stride=2, padding=(1, 2))
        self.fc = nn.Linear(24, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            # The gradient of the keys' bias is only a rounding error, which Adam would scale up.
            self.add_module(name, nn.Linear(size, size, bias=name != "k_proj"))

    def forward(self, x):
        batch, length, size = x.shape

        def split(y):
            return y.view(batch, length, self.heads, -1).transpose(1, 2)

        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        unseen = torch.ones(length, length, dtype=torch.bool).triu(1)
        y = scores.masked_fill(unseen, -math.inf).softmax(-1) @ v
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, size))


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.ln1 = nn.LayerNorm(size)
        self.attn = Attention(size, heads)
        self.ln2 = nn.LayerNorm(size)
        self.up = nn.Linear(size, 2 * size)
        self.down = nn.Linear(2 * size, size)

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    VOCABULARY, LENGTH, SIZE, HEADS = 24, 8, 16, 2

    def __init__(self, tied):
        super().__init__()
        self.wte = nn.Embedding(self.VOCABULARY, self.SIZE)
        self.wpe = nn.Embedding(self.LENGTH, self.SIZE)
        self.blocks = nn.ModuleList(Block(self.SIZE, self.HEADS) for _ in range(2))
        self.ln_f = nn.LayerNorm(self.SIZE)
        if not tied:
            self.head = nn.Linear(self.SIZE, self.VOCABULARY, bias=False)

    def forward(self, x):
        x = self.wte(x) + self.wpe(torch.arange(self.LENGTH))
        for block in self.blocks:
            x = block(x)
        x = self.ln_f(x)
        return self.head(x) if hasattr(self, "head") else x @ self.wte.weight.T


# With an eps as large as 1e-4 the results show where it is added, and the rounding error of a
# gradient near 0 doesn't become a step.
ADAM = {"lr": 1e-2, "betas": (0.8, 0.99), "eps": 1e-4}


def groups(model):
    """Makes groups: weights decay, and all other parameters have a higher learning rate."""
    weights = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    return [
        {"params": weights, "weight_decay": 0.1},
        {"params": others, "lr": 3e-2, "weight_decay": 0.0},
    ]


OPTIMIZERS = {
    "sgd": lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
    "momentum": lambda m: torch.optim.SGD(
        m.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01
    ),
    "nesterov": lambda m: torch.optim.SGD(
        m.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True
    ),
    "adam": lambda m: torch.optim.Adam(m.parameters(), weight_decay=0.1, **ADAM),
    "adamw": lambda m: torch.optim.AdamW(m.parameters(), weight_decay=0.1, **ADAM),
    "groups": lambda m: torch.optim.AdamW(groups(m), **ADAM),
    "clip": lambda m: torch.optim.SGD(m.parameters(), lr=0.5),
}


def train(name, make_model, batches, optimizers=OPTIMIZERS, folder=HERE):
    """Trains with each optimizer from the same parameters, on the same batches."""
    torch.manual_seed(20)
    model = make_model()
    with torch.no_grad():
        for p in model.parameters():  # LayerNorm's ones and zeros would hide mistakes
            p.copy_(rounded(p + 0.1 * torch.randn_like(p)))
    first = {key: value.clone() for key, value in model.state_dict().items()}
    x, labels = batches()
    tensors = {"x": x, "labels": labels}
    tensors.update({"parameter." + key: value for key, value in first.items()})
    for key in optimizers:
        model.load_state_dict(first)
        optimizer = optimizers[key](model)
        losses, norms = [], []
        for step in range(STEPS):
            logits = model(x[step])
            loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels[step].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            if key == "clip":
                norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
            optimizer.step()
            losses.append(loss.item())
        tensors[key + ".loss"] = np.array(losses)
        if norms:
            tensors[key + ".norm"] = np.array(norms)
        for parameter, value in model.state_dict().items():
            tensors[f"{key}.parameter.{parameter}"] = value.clone()
    write("train_" + name, tensors, folder)


def classes(*shape):
    return normal(STEPS, BATCH, *shape), torch.randint(5, (STEPS, BATCH))


def tokens():
    text = torch.randint(Gpt.VOCABULARY, (STEPS, BATCH, Gpt.LENGTH + 1))
    return text[..., :-1], text[..., 1:]


class Cases:
    """Adds a function's result and its gradients to the tensors of a golden file."""

    def __init__(self):
        self.tensors = {}

    def __call__(self, name, function, **operands):
        operands = {key: value.clone() for key, value in operands.items()}
        floating = {key: value for key, value in operands.items() if value.is_floating_point()}
        for value in floating.values():
            value.requires_grad_()
        y = function(*operands.values())
        for key, value in operands.items():
            self.tensors[f"{name}.{key}"] = value
        self.tensors[name + ".y"] = y
        if not y.is_floating_point():
            return
        weight = normal(*y.shape)
        if y.requires_grad:
            (y * weight).sum().backward()
        self.tensors[name + ".weight"] = weight
        for key, value in floating.items():
            gradient = torch.zeros_like(value) if value.grad is None else value.grad
            self.tensors[f"{name}.grad.{key}"] = gradient


def op_cases():
    case = Cases()
    torch.manual_seed(21)
    matrix = normal(4, 6)
    case("gelu", lambda x: F.gelu(x, approximate="tanh"), x=matrix)
    case("silu", F.silu, x=matrix)
    case("softmax", lambda x: F.softmax(x, -1), x=3 * matrix)
    case("softmax_dim_0", lambda x: F.softmax(x, 0), x=3 * matrix)
    case("log_softmax", lambda x: F.log_softmax(x, -1), x=3 * matrix)
    case("layer_norm", lambda x, scale, bias: F.layer_norm(x, (6,), scale, bias),
         x=normal(3, 4, 6), scale=normal(6), bias=normal(6))
    case("layer_norm_2_dims", lambda x, scale, bias: F.layer_norm(x, (4, 6), scale, bias),
         x=normal(3, 4, 6), scale=normal(4, 6), bias=normal(4, 6))
    case("embedding", lambda x, table: F.embedding(x, table),
         x=torch.tensor([[1, 3, 1], [0, 4, 1]]), table=normal(5, 4))

    images = normal(2, 4, 9, 8)
    for name, shape, options in (
        ("conv2d", (6, 4, 3, 2), {}),
        ("conv2d_stride_padding", (6, 4, 3, 2), {"stride": (2, 3), "padding": (1, 2)}),
        ("conv2d_dilation", (3, 4, 3, 2), {"dilation": (2, 3), "padding": 1}),
        ("conv2d_groups", (6, 2, 3, 3), {"groups": 2, "stride": 2, "padding": 1}),
        ("conv2d_depthwise", (8, 1, 3, 3), {"groups": 4, "dilation": 2, "padding": 2}),
    ):
        case(name, lambda x, kernel, bias, o=options: F.conv2d(x, kernel, bias, **o),
             x=images, kernel=normal(*shape), bias=normal(shape[0]))
    for name, options in (
        ("max_pool2d", {"kernel_size": 2}),
        ("max_pool2d_padding", {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}),
        ("max_pool2d_dilation", {"kernel_size": 2, "stride": 1, "dilation": (3, 2)}),
    ):
        case(name, lambda x, o=options: F.max_pool2d(x, **o), x=images)
    case("max_pool2d_ties", lambda x: F.max_pool2d(x, 3, stride=1, padding=1),
         x=torch.randint(3, (2, 2, 5, 5)).double())
    padded = {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}
    case("avg_pool2d", lambda x: F.avg_pool2d(x, 2), x=images)
    case("avg_pool2d_padding", lambda x: F.avg_pool2d(x, **padded), x=images)
    case("avg_pool2d_without_padding",
         lambda x: F.avg_pool2d(x, **padded, count_include_pad=False), x=images)

    def attention(x, in_proj_weight, in_proj_bias, out_proj_weight, out_proj_bias, mask=None):
        layer = nn.MultiheadAttention(8, 2, batch_first=True)
        state = {"in_proj_weight": in_proj_weight, "in_proj_bias": in_proj_bias,
                 "out_proj.weight": out_proj_weight, "out_proj.bias": out_proj_bias}
        functional = torch.nn.utils.stateless.functional_call
        return functional(layer, state, (x, x, x), {"attn_mask": mask})[0]

    operands = {"x": normal(2, 5, 8), "in_proj_weight": normal(24, 8), "in_proj_bias": normal(24),
                "out_proj_weight": normal(8, 8), "out_proj_bias": normal(8)}
    unseen = torch.ones(5, 5, dtype=torch.bool).triu(1)
    case("multi_head_attention", attention, **operands)
    case("multi_head_attention_causal", lambda *o: attention(*o, mask=unseen), **operands)

    target = rounded(torch.rand(4, 6))
    case("binary_cross_entropy_with_logits", F.binary_cross_entropy_with_logits,
         input=20 * matrix, target=target)
    case("l1_loss", F.l1_loss, input=matrix, target=target)
    case("mse_loss", F.mse_loss, input=matrix, target=target)
    case("cross_entropy", F.cross_entropy, input=3 * matrix, target=torch.tensor([5, 0, 2, 2]))

    def batch_norm(x, scale, bias):
        return F.batch_norm(x, None, None, scale, bias, training=True)

    case("batch_norm", batch_norm, x=normal(4, 3, 5, 2), scale=normal(3), bias=normal(3))
    case("batch_norm_2_dims", batch_norm, x=normal(6, 3), scale=normal(3), bias=normal(3))

    def rope(x):  # torch has none
        half = x.shape[-1] // 2
        angle = torch.outer(torch.arange(x.shape[-2]), 100.0 ** (-torch.arange(half) / half))
        first, second = x.chunk(2, -1)
        return torch.cat([first * angle.cos() - second * angle.sin(),
                          second * angle.cos() + first * angle.sin()], -1)

    case("rope", rope, x=normal(2, 3, 5, 6))
    write("ops", case.tensors)


def tensor_op_cases():
    case = Cases()
    torch.manual_seed(22)
    x = normal(4, 6)
    small = rounded(torch.rand(4, 6) * 1.8 - 0.9)
    for name, function, operand in (
        ("tan", torch.tan, small), ("log1p", torch.log1p, small), ("expm1", torch.expm1, x),
        ("remainder_by_a_number", lambda a: torch.remainder(a, -1.5), 5 * x),
        ("stddev_of_equals", torch.std, 0 * x + 2), ("elu_of_zeros", F.elu, 0 * x),
        ("clamp_between_nothing", lambda a: a.clamp(3, 1), 3 * x),
        ("norm_of_roots", lambda a: torch.linalg.vector_norm(a, 0.5, dim=1), torch.round(x)),
        ("hardsigmoid_at_its_ends", F.hardsigmoid, torch.round(2 * x) * 1.5),
        ("tril_of_all", lambda a: torch.tril(a, 1 << 30), x),
        ("erf", torch.erf, 2 * x), ("sign", torch.sign, x), ("floor", torch.floor, 3 * x),
        ("ceil", torch.ceil, 3 * x), ("round", torch.round, torch.round(6 * x) / 2),
        ("clamp", lambda a: a.clamp(-0.5, 0.75), x), ("clamp_min", lambda a: a.clamp(min=0.25), x),
        ("clamp_max", lambda a: a.clamp(max=0.25), x),
        ("clamp_at_its_bounds", lambda a: a.clamp(-1, 1), torch.round(2 * x) / 2),
        ("masked_fill", lambda a: (a * a).masked_fill(a > 0, 7), x),
        ("stop_gradient", lambda a: a.detach() * a, x),
        ("gelu_exact", F.gelu, x), ("leaky_relu", lambda a: F.leaky_relu(a, 0.1), x),
        ("elu", lambda a: F.elu(a, 1.5), x), ("mish", F.mish, x),
        ("hardsigmoid", F.hardsigmoid, 4 * x), ("hardswish", F.hardswish, 4 * x),
        ("amin", torch.amin, x), ("amin_dim", lambda a: a.amin(1, keepdim=True), x),
        ("var", torch.var, x), ("var_dim", lambda a: a.var(0, unbiased=False, keepdim=True), x),
        ("stddev", torch.std, x), ("stddev_dim", lambda a: a.std(1), x),
        ("norm", torch.linalg.vector_norm, x),
        ("norm_dim", lambda a: torch.linalg.vector_norm(a, dim=1, keepdim=True), x),
        ("norm_1", lambda a: torch.linalg.vector_norm(a, 1, dim=0), x),
        ("norm_3", lambda a: torch.linalg.vector_norm(a, 3, dim=0), x),
        ("norm_infinity", lambda a: torch.linalg.vector_norm(a, math.inf, dim=0), x),
        ("norm_minus_infinity", lambda a: torch.linalg.vector_norm(a, -math.inf, dim=0), x),
        ("norm_of_zeros", lambda a: torch.linalg.vector_norm(a, dim=0), 0 * x),
        ("logsumexp", lambda a: torch.logsumexp(a, (0, 1)), 20 * x),
        ("logsumexp_dim", lambda a: torch.logsumexp(a, 0, keepdim=True), 20 * x),
        ("unsqueeze", lambda a: a.unsqueeze(-1), x), ("flatten", torch.flatten, x),
        ("squeeze", lambda a: a.squeeze(), normal(1, 3, 1, 2)),
        ("squeeze_dim", lambda a: a.squeeze(2), normal(1, 3, 1, 2)),
        ("flatten_dims", lambda a: a.flatten(1, 2), normal(2, 3, 1, 2)),
        ("split", lambda a: torch.cat(a.split(4, 1)[::-1], 1), x),
        ("split_sizes", lambda a: torch.cat(a.split([1, 0, 3, 2], 1)[::-1], 1), x),
        ("chunk", lambda a: torch.cat(a.chunk(3, 0)[::-1], 0), x),
        ("repeat", lambda a: a.repeat(3, 1, 2), x), ("roll", lambda a: a.roll(-2, 1), x),
        ("tril", torch.tril, x), ("triu", lambda a: torch.triu(a, 1), normal(2, 4, 5)),
    ):
        case(name, function, x=operand)
    for name, function, a, b in (
        ("atan2", torch.atan2, x, normal(4, 6)), ("fmod", torch.fmod, 5 * x, normal(6)),
        ("remainder", torch.remainder, 5 * x, normal(6)),
        ("stack", lambda a, b: torch.stack([a, b], -1), x, normal(4, 6)),
    ):
        case(name, function, a=a, b=b)
    ties = torch.tensor([[1.0, 3, 3, 0], [2, math.nan, 5, math.nan], [0, 0, 0, 0]])
    case("argmax", lambda a: a.argmax(1), x=ties)
    case("argmax_flat", torch.argmax, x=x)
    case("argmin", lambda a: a.argmin(-1, keepdim=True), x=x)
    flags = torch.tensor([[0.0, 1, -2], [0, 0, 0], [3, 1, 1]])
    case("any", lambda a: a.bool().any(1).int(), x=flags)
    case("all", lambda a: a.bool().all(1).int(), x=flags)
    case("logical", lambda a: (torch.logical_xor(a, a > 0) | ~torch.logical_and(a, a < 2)).int(),
         x=flags)
    holes = torch.tensor([[2.0, 0.5, -1, 3], [0, 4, 2, 0.5], [2, 0, 0, 3]])
    for name, function, operand in (
        ("sort", lambda a: a.sort(1)[0], x),
        ("sort_descending", lambda a: a.sort(0, descending=True)[0], x),
        ("topk", lambda a: a.topk(3, 1)[0], x),
        ("topk_smallest", lambda a: a.topk(2, 0, largest=False)[0], x),
        ("cumsum", lambda a: a.cumsum(0), x), ("cumprod", lambda a: a.cumprod(1), x),
        ("cumprod_of_zeros", lambda a: a.cumprod(1), holes),
    ):
        case(name, function, x=operand)
    case("argsort", lambda a: torch.sort(a, dim=1, stable=True)[1], x=ties)
    case("argsort_descending",
         lambda a: torch.sort(a, dim=1, stable=True, descending=True)[1], x=ties)
    places = torch.tensor([[5, 0, 5], [1, 1, 2]])
    case("gather", lambda a, i: a.gather(1, i), x=x, index=places)
    case("gather_dim_0", lambda a, i: a.gather(0, i), x=x, index=torch.tensor([[3, 0, 1, 3, 3, 2]]))
    case("scatter_add", lambda a, b, i: a.scatter_add(1, i, b), x=normal(2, 6), source=normal(2, 3),
         index=places)
    index = torch.tensor([3, 0, 3])
    case("one_hot", lambda i: F.one_hot(i, 5).int(), index=index)
    case("index_select", lambda a, i: a.index_select(1, i), x=x, index=index)
    write("tensor_ops", case.tensors)


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    train("mlp", Mlp, lambda: classes(12))
    train("cnn", Cnn, lambda: classes(2, 16, 16))
    train("gpt", lambda: Gpt(tied=True), tokens)
    train("gpt_untied", lambda: Gpt(tied=False), tokens, {"adamw": OPTIMIZERS["adamw"]})
    op_cases()
    tensor_op_cases()


if __name__ == "__main__":
    main()
