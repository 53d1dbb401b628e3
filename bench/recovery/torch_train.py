"""The same training under torchrun. Arguments: FOLDER STEPS SAVE_EVERY.

Every rank appends to FOLDER/log the line "start RANK PID RESTARTS STEP", and then "step RANK STEP
NANOSECONDS" (CLOCK_MONOTONIC) for each ended step. Rank 0 saves the state from which all ranks continue
after a restart."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

BATCH = 32


def main():
    folder, steps, save_every = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    saved = f"{folder}/checkpoint"
    first = 0
    if os.path.exists(saved):
        state = torch.load(saved)
        first = state["step"]
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
    model = nn.parallel.DistributedDataParallel(net)
    log = os.open(f"{folder}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def say(text):
        os.write(log, (text + "\n").encode())

    say(f"start {rank} {os.getpid()} {os.environ['TORCHELASTIC_RESTART_COUNT']} {first}")
    for step in range(first, steps):
        x = torch.rand(BATCH // ranks, 64)
        labels = (torch.arange(BATCH // ranks) + step) % 10
        loss = nn.functional.cross_entropy(model(x), labels)
        optimizer.zero_grad()
        try:
            loss.backward()
        except RuntimeError as error:  # another rank is gone
            sys.exit(f"rank {rank}: {error}")
        optimizer.step()
        loss.item()
        say(f"step {rank} {step + 1} {time.monotonic_ns()}")
        if rank == 0 and (step + 1) % save_every == 0:
            torch.save({"step": step + 1, "net": net.state_dict(),
                        "optimizer": optimizer.state_dict()}, saved + ".new")
            os.replace(saved + ".new", saved)
    dist.barrier()


main()
