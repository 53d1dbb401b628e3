"""Writes files with torch.save() for the tests. Needs PyTorch (the files were written with 2.15):
build/peers/torch/bin/python tests/golden/pytorch/make.py
"""

import collections
import pathlib

import torch

FOLDER = pathlib.Path(__file__).parent


def rising(count, dtype, factor=1.0):
    """Returns -factor, 0, factor, 2 * factor, ..."""
    return ((torch.arange(count, dtype=torch.float64) - 1) * factor).to(dtype)


def save(name, value, **options):
    torch.save(value, FOLDER / name, **options)


def save_kinds():
    kinds = collections.OrderedDict()
    kinds["f32"] = rising(8, torch.float32, 1.1).reshape(4, 2)
    kinds["f64"] = rising(3, torch.float64, 1e-3)
    kinds["f16"] = rising(12, torch.float16, 0.125).reshape(3, 4)
    kinds["bf16"] = rising(6, torch.bfloat16, 0.75).reshape(2, 3)
    kinds["i64"] = torch.tensor([-(2**40), 2**40])
    kinds["i32"] = torch.tensor(-70000, dtype=torch.int32)
    kinds["i16"] = torch.tensor([-300, 300], dtype=torch.int16)
    kinds["i8"] = torch.tensor([-128, 0, 127], dtype=torch.int8)
    kinds["u8"] = torch.tensor([0, 128, 255], dtype=torch.uint8)
    kinds["u16"] = torch.tensor([0, 65535], dtype=torch.uint16)
    kinds["u32"] = torch.tensor([0, 2**32 - 1], dtype=torch.uint32)
    kinds["bool"] = torch.tensor([True, False, False, True, True])
    kinds["none"] = torch.empty(0, 4)
    kinds["parameter"] = torch.nn.Parameter(rising(3, torch.float32))
    kinds["complex"] = torch.zeros(2, dtype=torch.complex64)
    kinds["f8"] = rising(4, torch.float32).to(torch.float8_e4m3fn)
    kinds["nine_dims"] = torch.ones(1, 1, 1, 1, 1, 1, 1, 1, 2)
    save("kinds.pt", kinds)
    save("protocol4.pt", {"a": {"b": [rising(2, torch.float32), rising(3, torch.int32)]}},
         pickle_protocol=4)


def save_views():
    base = torch.arange(24.0).reshape(4, 6)
    save("views.pt", {
        "base": base,
        "row": base[1],
        "column": base[:, 2],
        "transposed": base.t(),
        "strided": base[::2, 1::2],
        "expanded": torch.arange(3.0).expand(4, 3),
        "flags": torch.tensor([[True, False], [False, False]]).t(),
        "same": base,
    })


def save_training():
    torch.manual_seed(1)
    net = torch.nn.Sequential(collections.OrderedDict(fc1=torch.nn.Linear(3, 4),
                                                      fc2=torch.nn.Linear(4, 2)))
    for parameter in net.parameters():
        parameter.data = rising(parameter.numel(), torch.float32, 0.5).reshape(parameter.shape)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    for parameter in net.parameters():
        parameter.data = rising(parameter.numel(), torch.float32, 0.5).reshape(parameter.shape)
    save("training.pt", {
        "model": net.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "loss": 0.5,
        "tags": {"a", "b"},
        "shape": torch.Size([3, 4]),
        "device": torch.device("cpu"),
        "dtype": torch.float32,
        "raw": b"\x00\x01",
    })
    save("module.pt", net)
    save("old.pt", net.state_dict(), _use_new_zipfile_serialization=False)
    save("one.pt", rising(4, torch.float32))
    save("pytorch_model.bin", net.state_dict())


if __name__ == "__main__":
    save_kinds()
    save_views()
    save_training()
