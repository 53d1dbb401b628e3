"""A rank of torch.distributed with the gloo backend. It uses the protocol of protocol.hpp."""

import json
import os
import socket
import statistics
import time

import torch
import torch.distributed as dist

RANK = int(os.environ["WEFT_BENCH_RANK"])
RANKS = int(os.environ["WEFT_BENCH_RANKS"])


def pattern(count, rank, seed, offset=0):
    """Element i of a rank's tensor is (i + 5 * rank + seed) % 64."""
    start = offset + 5 * rank + seed
    return torch.arange(start, start + count, dtype=torch.int32).remainder_(64).float()


def expected(op, count, seed):
    part = count // RANKS
    if op == "all_reduce":
        return sum(pattern(count, rank, seed) for rank in range(RANKS))
    if op == "broadcast":
        return pattern(count, 0, seed)
    offset = RANK * part if op == "all_to_all" else 0
    return torch.cat([pattern(part, rank, seed, offset) for rank in range(RANKS)])


def prepare(op, count):
    """Returns (source, destination, call). If op is in place, source and destination are the same tensor."""
    if op == "barrier":
        return None, None, dist.barrier
    if op == "all_reduce":
        tensor = torch.zeros(count)
        return tensor, tensor, lambda: dist.all_reduce(tensor)
    if op == "broadcast":
        tensor = torch.zeros(count)
        return tensor, tensor, lambda: dist.broadcast(tensor, 0)
    destination = torch.zeros(count)
    if op == "all_gather":
        source = torch.zeros(count // RANKS)
        parts = list(destination.chunk(RANKS))
        return source, destination, lambda: dist.all_gather(parts, source)
    if op == "all_to_all":
        source = torch.zeros(count)
        return source, destination, lambda: dist.all_to_all_single(destination, source)
    raise ValueError(f"torch's gloo has no {op}")


class Batch:
    def __init__(self, request):
        self.request = request
        self.op = request["op"]
        self.count = request["bytes"] // 4
        self.source, self.destination, self.call = prepare(self.op, self.count)
        self.patterns = []
        if self.source is not None:
            self.patterns = [pattern(self.source.numel(), RANK, seed) for seed in (0, 1)]

    def fill(self, seed):
        if self.source is not None:
            self.source.copy_(self.patterns[seed])

    def read(self):
        return None if self.destination is None else self.destination.sum()

    def time(self, repetition):
        repetitions = self.request["repetitions"]
        parts = min(self.request["parts"], repetitions)
        seconds = []
        done = 0
        dist.barrier()
        start = time.perf_counter()
        for part in range(parts):
            first = done
            while done < repetitions * (part + 1) // parts:
                repetition(done % 2)
                done += 1
            end = time.perf_counter()
            seconds.append((end - start) / (done - first))
            start = end
        dist.barrier()
        return statistics.median(seconds)

    def cycle(self, seed):
        self.fill(seed)
        self.call()
        self.read()

    def baseline(self, seed):
        self.fill(seed)
        dist.barrier()
        self.read()

    def run(self):
        self.fill(0)
        dist.barrier()
        self.call()
        reply = {}
        if self.destination is not None:
            reply["verified"] = torch.equal(self.destination, expected(self.op, self.count, 0))
        if self.request["metric"] == "loop":
            reply["call_seconds"] = self.time(lambda seed: self.call())
        else:
            reply["call_seconds"] = self.time(self.cycle)
            reply["baseline_seconds"] = self.time(self.baseline)
        return reply


def main():
    dist.init_process_group(
        "gloo", init_method=f"file://{os.environ['WEFT_BENCH_FOLDER']}/store", rank=RANK,
        world_size=RANKS)
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    if RANKS <= len(cores):
        os.sched_setaffinity(0, {cores[RANK]})
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["WEFT_BENCH_SOCKET"])
    stream = connection.makefile("rw")
    stream.write(json.dumps({"rank": RANK}) + "\n")
    stream.flush()
    for line in stream:
        try:
            reply = Batch(json.loads(line)).run()
        except Exception as error:  # the bench must be told of any error
            reply = {"error": str(error)}
        stream.write(json.dumps(reply) + "\n")
        stream.flush()


main()
