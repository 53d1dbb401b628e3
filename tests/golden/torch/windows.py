#!/usr/bin/env python3
"""Writes convolution_ops, window_ops (pools, resizing) and product_ops.safetensors (products and
derivatives). See make.py."""

import torch
from torch.nn import functional as F

import make
from make import normal

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
IMAGE = {1: (4, 4, 9), 2: (2, 4, 5, 6), 3: (2, 2, 3, 4, 4)}


def convolutions(case):
    for n, shape in IMAGE.items():
        channels, kernel = shape[1], (3, 2, 2)[:n]
        for name, options in (
            ("", {}), ("_stride", dict(stride=2, padding=1)),
            ("_dilation", dict(dilation=(1, 2, 1)[:n])), ("_groups", dict(groups=2)),
            ("_same", dict(padding="same")),
        ):
            groups = options.get("groups", 1)
            case(f"conv{n}d{name}", lambda x, w, b, n=n, o=options: CONV[n](x, w, b, **o),
                 x=normal(*shape), kernel=normal(4, channels // groups, *kernel), bias=normal(4))
        for name, options in (
            ("", {}), ("_stride", dict(stride=2, padding=1, output_padding=1)),
            ("_dilation", dict(stride=(1, 3, 2)[:n], dilation=2)), ("_groups", dict(groups=2)),
            ("_cut", dict(padding=2)),
        ):
            groups = options.get("groups", 1)
            case(f"conv_transpose{n}d{name}",
                 lambda x, w, b, n=n, o=options: TRANSPOSE[n](x, w, b, **o),
                 x=normal(*shape), kernel=normal(channels, 4 // groups, *kernel), bias=normal(4))
    case("conv2d_of_one_image", F.conv2d, x=normal(3, 5, 4), kernel=normal(2, 3, 2, 2))


def pools(case):
    one, three = normal(*IMAGE[1]), normal(*IMAGE[3])
    for name, function, x in (
        ("max_pool1d", lambda a: F.max_pool1d(a, 3, stride=2, padding=1), one),
        ("max_pool3d", lambda a: F.max_pool3d(a, 2, stride=(1, 2, 2), ceil_mode=True), three),
        ("avg_pool1d", lambda a: F.avg_pool1d(a, 4, stride=3, padding=2), one),
        ("avg_pool3d", lambda a: F.avg_pool3d(a, 2, stride=2, padding=1, ceil_mode=True,
                                              count_include_pad=False), three),
        ("max_pool2d_of_one_image", lambda a: F.max_pool2d(a, 2), normal(3, 4, 6)),
        ("adaptive_avg_pool1d", lambda a: F.adaptive_avg_pool1d(a, 4), one),
        ("adaptive_avg_pool2d", lambda a: F.adaptive_avg_pool2d(a, (3, 4)), normal(*IMAGE[2])),
        ("adaptive_avg_pool2d_whole", lambda a: F.adaptive_avg_pool2d(a, 1), normal(*IMAGE[2])),
        ("adaptive_avg_pool2d_larger", lambda a: F.adaptive_avg_pool2d(a, (7, 8)),
         normal(*IMAGE[2])),
        ("adaptive_avg_pool3d", lambda a: F.adaptive_avg_pool3d(a, (1, 3, 2)), three),
    ):
        case(name, function, x=x)


def resizing(case):
    image = {n: normal(*shape) for n, shape in IMAGE.items()}
    modes = {1: "linear", 2: "bilinear", 3: "trilinear"}
    for n, x in image.items():
        for name, options in (
            ("nearest_twice", dict(scale_factor=2)), ("nearest", dict(scale_factor=1.7)),
            ("nearest_smaller", dict(size=(2, 3, 2)[:n])),
            ("linear", dict(scale_factor=2, mode=modes[n], align_corners=False)),
            ("linear_smaller", dict(size=(2, 3, 2)[:n], mode=modes[n], align_corners=False)),
            ("linear_corners", dict(size=(7, 5, 1)[:n], mode=modes[n], align_corners=True)),
        ):
            case(f"interpolate{n}d_{name}", lambda a, o=options: F.interpolate(a, **o), x=x)


def products(case):
    for name, a, b in (
        ("vectors", (5,), (5,)), ("matrix_vector", (4, 6), (6,)), ("vector_matrix", (4,), (4, 6)),
        ("batch_vector", (2, 4, 6), (6,)), ("vector_batch", (4,), (2, 4, 6)),
        ("batch_matrix", (2, 4, 6), (6, 4)), ("matrix_batch", (4, 6), (2, 6, 4)),
        ("broadcast", (2, 1, 4, 6), (3, 6, 2)), ("broadcast_both", (2, 1, 4, 2), (1, 3, 2, 4)),
        ("of_ones", (1, 4, 1), (2, 1, 6)), ("two_batches", (2, 3, 4, 2), (2, 3, 2, 4)),
    ):
        case("matmul_" + name, torch.matmul, a=normal(*a), b=normal(*b))
    for name, equation, *shapes in (
        ("product", "ij,jk->ik", (4, 6), (6, 2)), ("batch", "bij,bkj->bik", (2, 4, 6), (2, 4, 6)),
        ("outer", "i,j->ji", (4,), (6,)), ("inner", "ij,ij->", (4, 6), (4, 6)),
        ("implied", "kj,ik", (4, 6), (6, 4)), ("ellipsis", "...ij,...jk->...ik", (2, 4, 6), (6, 2)),
        ("ellipsis_last", "i...,j...->ij...", (4, 6), (2, 6)),
        ("ellipsis_implied", "...i,...i", (2, 4, 6), (4, 6)),
        ("heads", "bshd,bthd->bhst", (2, 4, 2, 6), (2, 6, 2, 6)),
        ("three", "ai,bi,ci->abc", (2, 4), (4, 4), (2, 4)), ("elementwise", "ij,ij->ij", (4, 6), (4, 6)),
        ("broadcast", "ij,ij->ij", (4, 1), (4, 6)), ("summed_first", "ij,kl->i", (4, 6), (2, 4)),
        ("spaces", "i j, j -> i", (4, 6), (6,)),
    ):
        names = "abc"[:len(shapes)]
        case("einsum_" + name, lambda *o, e=equation: torch.einsum(e, *o),
             **{key: normal(*shape) for key, shape in zip(names, shapes)})
    for name, equation, shape in (
        ("transpose", "ij->ji", (4, 6)), ("sum", "ij->j", (4, 6)), ("trace", "ii", (4, 4)),
        ("diagonal", "bii->bi", (2, 4, 4)),
    ):
        case("einsum_" + name, lambda a, e=equation: torch.einsum(e, a), x=normal(*shape))


def derivatives(case):
    holes = torch.tensor([[2.0, 0.5, -1, 3, 1], [0, 4, 2, 0.5, -2], [2, 0, 0, 3, 1]])
    case("prod", torch.prod, x=normal(3, 5))
    case("prod_dim", lambda a: a.prod(1, keepdim=True), x=holes)
    case("prod_dim_0", lambda a: a.prod(0), x=holes)

    def function(a):
        return torch.sin(a) @ torch.exp(a).T

    def product_with(x, v, transposed):
        take = torch.autograd.functional.vjp if transposed else torch.autograd.functional.jvp
        return take(function, x, v.detach(), create_graph=True)[1]

    case("vjp", lambda a, b: product_with(a, b, True), a=normal(4, 6), b=normal(4, 4))
    case("jvp", lambda a, b: product_with(a, b, False), a=normal(4, 6), b=normal(4, 6))


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(31)
    case = make.Cases()
    convolutions(case)
    make.write("convolution_ops", case.tensors)
    case = make.Cases()
    pools(case)
    resizing(case)
    make.write("window_ops", case.tensors)
    case = make.Cases()
    products(case)
    derivatives(case)
    make.write("product_ops", case.tensors)


if __name__ == "__main__":
    main()
