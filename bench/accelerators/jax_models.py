"""The models "mlp" and "gpt" of bench/training/models.cpp in JAX. Arguments: FOLDER MODEL.

FOLDER has state.safetensors, the initial parameters, and batches: their shapes in batches.json, their
elements in x.bin and labels.bin. The script answers lines of stdin: "version" by {"version": JAX's},
"first" by {"ms": [the time of a first step, with its tracing and compilation]}, and "train COUNT" by
{"ms": [...], "losses": [...]} of COUNT steps."""

import json
import math
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

LR, DECAY, BETA1, BETA2, EPS = 1e-3, 0.01, 0.9, 0.999, 1e-8


def parameters_of(path):
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    state = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        numbers = np.frombuffer(data, np.float32, (end - begin) // 4, 8 + size + begin)
        state[name] = numbers.reshape(entry["shape"])
    return state


def batches_of(folder):
    shapes = json.loads(pathlib.Path(f"{folder}/batches.json").read_text())

    def read(name, dtype):
        return np.fromfile(f"{folder}/{name}.bin", dtype).reshape(-1, *shapes[name])

    return list(zip(read("x", np.int32 if shapes["ids"] else np.float32), read("labels", np.int32)))


def linear(state, name, x):
    y = x @ state[f"{name}.weight"].T
    return y + state[f"{name}.bias"] if f"{name}.bias" in state else y


def norm(state, name, x):
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * state[f"{name}.weight"] + state[f"{name}.bias"]


def mlp(state, x):
    for name in ("fc1", "fc2"):
        x = jax.nn.relu(linear(state, name, x))
    return linear(state, "fc3", x)


def attention(state, block, x):
    batch, length, size = x.shape
    heads = max(size // 32, 2)
    q, k, v = (linear(state, f"{block}.{name}", x).reshape(batch, length, heads, -1)
               for name in ("q_proj", "k_proj", "v_proj"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(size // heads)
    seen = jnp.tril(jnp.ones((length, length), bool))
    weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, size)
    return linear(state, f"{block}.out_proj", mixed)


def gpt(state, ids):
    x = state["tokens.weight"][ids] + state["positions.weight"][: ids.shape[1]]
    for i in range(sum(name.endswith("up.weight") for name in state)):
        block = f"block{i}"
        x = x + attention(state, block, norm(state, f"{block}.ln1", x))
        up = linear(state, f"{block}.up", norm(state, f"{block}.ln2", x))
        x = x + linear(state, f"{block}.down", jax.nn.gelu(up, approximate=True))
    return linear(state, "head", norm(state, "norm", x))


def step_of(model):
    def loss_of(state, x, labels):
        chosen = jax.nn.log_softmax(model(state, x))
        return -jnp.take_along_axis(chosen, labels[..., None], -1).mean()

    def step(state, mean, square, count, x, labels):
        loss, gradient = jax.value_and_grad(loss_of)(state, x, labels)
        count = count + 1
        mean = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, mean, gradient)
        square = jax.tree.map(lambda s, g: BETA2 * s + (1 - BETA2) * g * g, square, gradient)

        def update(w, m, s):
            m = m / (1 - BETA1**count)
            s = s / (1 - BETA2**count)
            return w * (1 - LR * DECAY) - LR * m / (jnp.sqrt(s) + EPS)

        return jax.tree.map(update, state, mean, square), mean, square, count, loss

    return jax.jit(step, donate_argnums=(0, 1, 2, 3))


class Training:
    def __init__(self, folder, model):
        state = jax.tree.map(jnp.array, parameters_of(f"{folder}/state.safetensors"))
        zeros = lambda: jax.tree.map(jnp.zeros_like, state)
        self.state = jax.block_until_ready((state, zeros(), zeros(), jnp.float32(0)))
        self.batches = batches_of(folder)
        self.step = step_of({"mlp": mlp, "gpt": gpt}[model])
        self.done = 0

    def train(self, count):
        times, losses = [], []
        for _ in range(count):
            begin = time.perf_counter()
            x, labels = self.batches[self.done % len(self.batches)]
            self.done += 1
            *self.state, loss = self.step(*self.state, x, labels)
            losses.append(float(loss))
            times.append(1e3 * (time.perf_counter() - begin))
        return {"ms": times, "losses": losses}


def main():
    folder, model = sys.argv[1:3]
    training = None
    for line in sys.stdin:
        request = line.split()
        if request[0] == "version":
            answer = {"version": jax.__version__}
        elif request[0] == "first":
            jax.clear_caches()
            answer = Training(folder, model).train(1)
        else:
            training = training or Training(folder, model)
            answer = training.train(int(request[1]))
        print(json.dumps(answer), flush=True)


main()
