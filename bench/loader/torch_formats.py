"""torch's DataLoader over files of the formats that weft reads: TORCH FOLDER IDX TOKENIZER ITEMS BATCH.

TORCH is the folder of PyTorch and its dependencies. The script first writes ITEMS items of each format to
FOLDER, and prints {"formats": [{"name": ..., "bytes": ...}, ...]}. It answers each line of stdin, "NAME
WORKERS", by {"items": ..., "wall_s": ...} of one epoch; for "NAME WORKERS sum" it adds "sum", the sum over
the first field of all items, so that readers can be compared."""

import io
import json
import os
import pathlib
import struct
import sys
import tarfile
import time

sys.path.insert(0, sys.argv[1])

import numpy  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

SIDE = 224
COLUMNS = 32
WINDOW = 1024
TEXT_LENGTH = 128
CLASSES = 10
WORDS = ("the loader reads what a step needs before the step asks for it and a worker reads only rows of "
         "its own chips so that no byte is read twice while the data lie in files of many forms").split()


def picture(number):
    """Draws waves and noise. Their files are about as large as those of photographs."""
    y, x = numpy.mgrid[0:SIDE, 0:SIDE]
    wave = numpy.sin(0.013 * x * (1 + number % 5)) * numpy.cos(0.017 * y)
    noise = numpy.random.default_rng(number).integers(0, 64, (SIDE, SIDE, 3))
    return Image.fromarray((90 + 60 * wave[:, :, None] + noise).astype(numpy.uint8))


def encoded(number, kind):
    file = io.BytesIO()
    picture(number).save(file, kind, **({"quality": 90} if kind != "PNG" else {}))
    return file.getvalue()


def text(number):
    random = numpy.random.default_rng(number)
    return " ".join(random.choice(WORDS, random.integers(20, 100)))


def write_pictures(folder, kind, items):
    for number in range(items):
        to = folder / f"class{number % CLASSES}"
        to.mkdir(parents=True, exist_ok=True)
        (to / f"{number:06}.{kind.lower()}").write_bytes(encoded(number, kind))


def write_files(folder, items):
    random = numpy.random.default_rng(1)
    numpy.save(folder / "rows.npy", random.random((items, 64, 64), dtype=numpy.float32))
    for kind in ("JPEG", "PNG", "WEBP"):
        write_pictures(folder / kind.lower(), kind, items)
    for shard in range(2):
        with tarfile.open(folder / f"shard-{shard}.tar", "w") as tar:
            for number in range(shard, items, 2):
                for name, data in ((f"{number:06}.jpg", encoded(number, "JPEG")),
                                   (f"{number:06}.cls", str(number % CLASSES).encode())):
                    entry = tarfile.TarInfo(name)
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))
    with open(folder / "rows.csv", "w", encoding="utf-8") as file:
        file.write(",".join(f"c{column}" for column in range(COLUMNS)) + "\n")
        for row in random.random((items, COLUMNS)):
            file.write(",".join(f"{number:.6f}" for number in row) + "\n")
    with open(folder / "texts.jsonl", "w", encoding="utf-8") as file:
        for number in range(items):
            file.write(json.dumps({"text": text(number), "label": number % CLASSES}) + "\n")
    random.integers(0, 50000, items * WINDOW + 1).astype("<u2").tofile(folder / "all.tokens")


def decoded(file):
    pixels = numpy.array(Image.open(file).convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1).float() / 255


def line_begins(path):
    begins, at = [], 0
    with open(path, "rb") as file:
        for line in file:
            begins.append(at)
            at += len(line)
    return begins


class Idx(torch.utils.data.Dataset):
    """A dataset that holds all bytes in memory, like torchvision's MNIST."""

    def __init__(self, images, labels):
        self.images = self.read(images)
        self.labels = self.read(labels)

    @staticmethod
    def read(path):
        data = pathlib.Path(path).read_bytes()
        sizes = struct.unpack(f">{data[3]}i", data[4:4 + 4 * data[3]])
        return torch.from_numpy(numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * data[3]).copy()
                                ).reshape(sizes)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i].float() / 255, int(self.labels[i])


class Npy(torch.utils.data.Dataset):
    def __init__(self, path):
        self.rows = numpy.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return (torch.from_numpy(numpy.array(self.rows[i])),)


class Pictures(torch.utils.data.Dataset):
    """A dataset like torchvision's ImageFolder with ToTensor."""

    def __init__(self, folder):
        names = sorted(path.name for path in folder.iterdir())
        self.files = [(path, label) for label, name in enumerate(names)
                      for path in sorted((folder / name).iterdir())]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path, label = self.files[i]
        with open(path, "rb") as file:
            return decoded(file), label


class Tar(torch.utils.data.Dataset):
    """Samples by their places in the archives, which are read once."""

    def __init__(self, paths):
        self.places = []
        for path in paths:
            with tarfile.open(path) as tar:
                members = [(m.offset_data, m.size) for m in tar.getmembers()]
            self.places += [(path, *pair) for pair in zip(members[::2], members[1::2])]
        self.files = {}

    def __len__(self):
        return len(self.places)

    def __getitem__(self, i):
        path, image, label = self.places[i]
        # Forked processes share the position at which a file is read next.
        if path not in self.files:
            self.files[path] = os.open(path, os.O_RDONLY)
        file = self.files[path]
        pixels = decoded(io.BytesIO(os.pread(file, image[1], image[0])))
        return pixels, int(os.pread(file, label[1], label[0]))


class Lines(torch.utils.data.Dataset):
    """The lines of a file by their places, made items by a function."""

    def __init__(self, path, header, item):
        self.path, self.item, self.process = path, item, None
        self.begins = line_begins(path)[header:]

    def __len__(self):
        return len(self.begins)

    def __getitem__(self, i):
        # Forked processes share the position at which a file is read next.
        if self.process != os.getpid():
            self.process, self.file = os.getpid(), open(self.path, "rb")
        self.file.seek(self.begins[i])
        return self.item(self.file.readline())


class Texts:
    def __init__(self, path):
        self.tokenizer = Tokenizer.from_file(path)
        self.tokenizer.enable_truncation(TEXT_LENGTH)
        self.tokenizer.enable_padding(length=TEXT_LENGTH)

    def __call__(self, line):
        record = json.loads(line)
        return torch.tensor(self.tokenizer.encode(record["text"]).ids), record["label"]


def numbers(line):
    return (torch.tensor([float(cell) for cell in line.split(b",")]),)


class Tokens(torch.utils.data.Dataset):
    def __init__(self, path):
        self.tokens = numpy.memmap(path, "<u2", "r")

    def __len__(self):
        return (len(self.tokens) - 1) // WINDOW

    def __getitem__(self, i):
        window = torch.from_numpy(self.tokens[i * WINDOW:(i + 1) * WINDOW + 1].astype(numpy.int32))
        return window[:-1], window[1:]


def bytes_of(path):
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def all_formats(folder, idx, tokenizer):
    made = {}

    def add(name, dataset, *paths):
        made[name] = (dataset, sum(bytes_of(path) for path in paths))

    images, labels = idx / "train-images-idx3-ubyte", idx / "train-labels-idx1-ubyte"
    if images.exists():
        add("idx", Idx(images, labels), images, labels)
    add("npy", Npy(folder / "rows.npy"), folder / "rows.npy")
    for kind in ("jpeg", "png", "webp"):
        add(kind, Pictures(folder / kind), folder / kind)
    shards = [folder / "shard-0.tar", folder / "shard-1.tar"]
    add("tar", Tar(shards), *shards)
    add("csv", Lines(folder / "rows.csv", 1, numbers), folder / "rows.csv")
    add("jsonl", Lines(folder / "texts.jsonl", 0, Texts(tokenizer)), folder / "texts.jsonl")
    add("tokens", Tokens(folder / "all.tokens"), folder / "all.tokens")
    return made


def main():
    folder, idx = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    items, batch = int(sys.argv[5]), int(sys.argv[6])
    torch.set_num_threads(1)
    write_files(folder, items)
    formats = all_formats(folder, idx, sys.argv[4])
    loaders, of = {}, None
    for line in sys.stdin:
        if line.split() == ["formats"]:
            answer = {"formats": [{"name": name, "bytes": size} for name, (_, size) in formats.items()],
                      "torch": torch.__version__}
            print(json.dumps(answer), flush=True)
            continue
        name, workers, *asked = line.split()
        if name != of:
            loaders, of = {}, name
        if workers not in loaders:
            # Workers persist from epoch to epoch, so that only the first epoch starts them.
            loaders[workers] = torch.utils.data.DataLoader(
                formats[name][0], batch_size=batch, drop_last=True, num_workers=int(workers),
                persistent_workers=workers != "0")
        begin, count, total = time.perf_counter(), 0, 0.0
        for fields in loaders[workers]:
            count += len(fields[0])
            if asked:
                total += float(fields[0].sum(dtype=torch.float64))
        print(json.dumps({"items": count, "wall_s": time.perf_counter() - begin, "sum": total}),
              flush=True)


main()
