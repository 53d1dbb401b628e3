"""torch's nn.LSTM on one thread. Arguments: TIME BATCH INPUT HIDDEN.

The script answers a line of stdin, "forward COUNT" or "training COUNT", by {"ms": [...]}, the
milliseconds of each step, and "blas" by {"blas": the library that multiplies its matrices}."""

import json
import os
import sys
import time

import torch


def blas():
    if torch.backends.mkl.is_available():
        return "MKL"
    paths = {line.split()[-1] for line in open("/proc/self/maps") if "blas" in line}
    return " ".join(sorted(map(os.path.basename, map(os.path.realpath, paths)))) or "none"


def main():
    steps, batch, size, hidden = map(int, sys.argv[1:5])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    lstm = torch.nn.LSTM(size, hidden)
    sgd = torch.optim.SGD(lstm.parameters(), lr=1e-3)
    x = torch.rand(steps, batch, size)

    def forward():
        with torch.no_grad():
            return lstm(x)[0].square().mean()

    def training():
        sgd.zero_grad()
        loss = lstm(x)[0].square().mean()
        loss.backward()
        sgd.step()
        return loss

    for line in sys.stdin:
        if line.strip() == "blas":
            print(json.dumps({"blas": blas()}), flush=True)
            continue
        what, count = line.split()
        times = []
        for _ in range(int(count)):
            begin = time.perf_counter()
            (forward if what == "forward" else training)().item()
            times.append(1e3 * (time.perf_counter() - begin))
        print(json.dumps({"ms": times}), flush=True)


main()
