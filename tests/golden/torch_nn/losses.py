#!/usr/bin/env python3
"""Writes losses.safetensors: torch's losses with their options, in the form of the ops of
../torch/make.py.

Needs what ../torch/make.py needs; run it as /usr/bin/python3 losses.py.
"""

import pathlib
import sys

import torch
from torch.nn import functional as F

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent / "torch"))
from make import Cases, normal, rounded, write  # noqa: E402


def of_classes(case):
    logits = 2 * normal(4, 6)
    labels = torch.tensor([5, 0, 2, 2])
    holes = torch.tensor([5, -100, 2, -100])
    classes = torch.tensor([0.5, 1.25, 0.75, 1, 2, 0.25])

    def torchs(options):
        return lambda x, i: F.cross_entropy(x, i, **options)

    for name, index, options in (
        ("sum", labels, {"reduction": "sum"}),
        ("none", labels, {"reduction": "none"}),
        ("none_ignored", holes, {"reduction": "none"}),
        ("sum_ignored", holes, {"reduction": "sum"}),
        ("smoothing", labels, {"label_smoothing": 0.3}),
        ("smoothing_ignored", holes, {"label_smoothing": 0.3}),
        ("ignore_index", labels, {"ignore_index": 2, "label_smoothing": 0.1}),
    ):
        case("cross_entropy_" + name, torchs(options), input=logits, index=index)
    for name, index, options in (
        ("weight", labels, {}),
        ("weight_ignored", holes, {}),
        ("weight_none", labels, {"reduction": "none"}),
        ("weight_smoothing", labels, {"label_smoothing": 0.3}),
        ("weight_smoothing_ignored", holes, {"label_smoothing": 0.3}),
    ):
        case("cross_entropy_" + name,
             lambda x, i, o=options: F.cross_entropy(x, i, weight=classes, **o),
             input=logits, index=index)
    soft = rounded(torch.softmax(normal(4, 6), 1))
    case("cross_entropy_soft", F.cross_entropy, input=logits, target=soft)
    case("cross_entropy_soft_smoothing_sum",
         lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2, reduction="sum"),
         input=logits, target=soft)
    case("cross_entropy_soft_none", lambda x, t: F.cross_entropy(x, t, reduction="none"),
         input=logits, target=soft)
    case("cross_entropy_of_sequences", lambda x, i: F.cross_entropy(x.permute(0, 2, 1), i),
         input=normal(2, 3, 4), index=torch.tensor([[0, -100, 3], [1, 1, -100]]))

    logs = rounded(torch.log_softmax(logits, 1))
    case("nll_loss", F.nll_loss, input=logs, index=labels)
    case("nll_loss_ignored", F.nll_loss, input=logs, index=holes)
    case("nll_loss_none", lambda x, i: F.nll_loss(x, i, reduction="none"), input=logs, index=holes)
    case("nll_loss_weight", lambda x, i: F.nll_loss(x, i, weight=classes), input=logs, index=holes)


def of_elements(case):
    x, target = normal(4, 6), normal(4, 6)
    both = {"input": x, "target": target}
    case("mse_loss_sum", lambda a, b: F.mse_loss(a, b, reduction="sum"), **both)
    case("l1_loss_none", lambda a, b: F.l1_loss(a, b, reduction="none"), **both)
    case("smooth_l1_loss", F.smooth_l1_loss, **both)
    case("smooth_l1_loss_beta", lambda a, b: F.smooth_l1_loss(a, b, beta=0.4), **both)
    case("smooth_l1_loss_linear", lambda a, b: F.smooth_l1_loss(a, b, beta=0.0), **both)
    case("huber_loss", F.huber_loss, **both)
    case("huber_loss_delta", lambda a, b: F.huber_loss(a, b, delta=0.6, reduction="sum"), **both)

    probabilities, targets = rounded(torch.rand(4, 6)), rounded(torch.rand(4, 6))
    case("binary_cross_entropy", F.binary_cross_entropy, input=probabilities, target=targets)
    case("binary_cross_entropy_none",
         lambda a, b: F.binary_cross_entropy(a, b, reduction="none"),
         input=probabilities, target=targets)
    case("binary_cross_entropy_with_logits_pos_weight",
         lambda a, b: F.binary_cross_entropy_with_logits(
             a, b, pos_weight=torch.tensor([1.5, 0.5, 1, 2, 0.25, 3])),
         input=20 * x, target=targets)
    logs = rounded(torch.log_softmax(x, 1))
    shares = rounded(torch.softmax(target, 1))
    case("kl_div", F.kl_div, input=logs, target=shares)
    case("kl_div_batch_mean", lambda a, b: F.kl_div(a, b, reduction="batchmean"),
         input=logs, target=shares)
    case("kl_div_log_target",
         lambda a, b: F.kl_div(a, b, reduction="sum", log_target=True),
         input=logs, target=rounded(torch.log_softmax(target, 1)))


def of_vectors(case):
    a, b = normal(4, 6), normal(4, 6)
    case("cosine_similarity", F.cosine_similarity, a=a, b=b)
    case("cosine_similarity_dim_0", lambda a, b: F.cosine_similarity(a, b, dim=0), a=a, b=b)
    case("cosine_similarity_broadcast", lambda a, b: F.cosine_similarity(a, b, dim=-1),
         a=normal(2, 4, 6), b=b)
    signs = torch.tensor([1, -1, -1, 1])
    case("cosine_embedding_loss", lambda a, b, i: F.cosine_embedding_loss(a, b, i),
         a=a, b=b, index=signs)
    case("cosine_embedding_loss_margin",
         lambda a, b, i: F.cosine_embedding_loss(a, b, i, margin=0.2, reduction="none"),
         a=a, b=b + a, index=signs)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    torch.manual_seed(33)
    CASE = Cases()
    of_classes(CASE)
    of_elements(CASE)
    of_vectors(CASE)
    write("losses", CASE.tensors, FOLDER)
