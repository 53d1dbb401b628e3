#!/usr/bin/env python3
"""Writes the pictures in this folder with Pillow, and the pixels that torchvision computes from them.

Needs Debian's python3-pil and python3-numpy. expected.npz has, for each picture, the pixels of
Image.convert("RGB"), and sizes changed as torchvision's Resize and CenterCrop do, which call Pillow.
"""

import os
import struct
import zlib

import numpy as np
from PIL import Image

here = os.path.dirname(os.path.abspath(__file__))
expected = {}


def path(name):
    os.makedirs(os.path.dirname(os.path.join(here, name)), exist_ok=True)
    return os.path.join(here, name)


def scene(width, height):
    """Returns smooth gradients, an edge and a small bright square."""
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack(
        [255 * x / (width - 1), 255 * y / (height - 1), 127 + 120 * np.sin(9 * (x + y) / width)], -1)
    pixels[height // 4 : height // 2, width // 3 : width // 2] = (250, 20, 60)
    return Image.fromarray(pixels.astype(np.uint8))


def expect(name, image):
    expected[name] = np.asarray(image)[None]


def keep(name):
    expect(name, Image.open(path(name)).convert("RGB"))


def write_png(name, pixels, bits, interlaced):
    """Writes colours of 8 or 16 bits; Pillow writes neither 16 bits nor interlaced PNGs (Adam7)."""
    passes = [(0, 0, 1, 1)]
    if interlaced:
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                  (0, 1, 1, 2)]
    rows = b""
    for left, top, x_step, y_step in passes:
        for row in pixels[top::y_step, left::x_step]:
            rows += b"\0" + row.astype(">u2" if bits == 16 else "u1").tobytes()

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    with open(path(name), "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, 2, 0, 0, interlaced)))
        file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


small = scene(24, 16)
small.save(path("rgb.png"))
rgba = small.copy()
rgba.putalpha(Image.linear_gradient("L").resize((24, 16)))
rgba.save(path("rgba.png"))
small.convert("L").save(path("gray.png"))
small.convert("LA").save(path("gray_alpha.png"))
small.convert("1").save(path("one_bit.png"))
palette = small.quantize(13)
palette.save(path("palette.png"), bits=4, transparency=2)
small.save(path("baseline.jpg"), quality=90)
small.save(path("progressive.jpg"), quality=90, progressive=True, subsampling=0)
small.convert("L").save(path("gray.jpg"), quality=90)
small.convert("CMYK").save(path("cmyk.jpg"), quality=90)
write_png("interlaced.png", np.asarray(small), 8, True)
for name in ("rgb", "rgba", "gray", "gray_alpha", "one_bit", "palette", "interlaced"):
    keep(name + ".png")
for name in ("baseline", "progressive", "gray", "cmyk"):
    keep(name + ".jpg")

# Each number is 257 times one of 8 bits.
write_png("rgb16.png", np.asarray(small).astype(np.uint16) * 257, 16, False)
expect("rgb16.png", small)
expect("luma", small.convert("L"))

bilinear = Image.Resampling.BILINEAR
expect("cover", small.resize((12, 8), bilinear).crop((2, 0, 10, 8)))  # Resize(8), CenterCrop(8)
expect("short_side", small.resize((15, 10), bilinear).crop((4, 1, 12, 9)))  # Resize(10), CenterCrop(8)
expect("enlarged", small.resize((40, 30), bilinear))
expect("area", small.crop((3, 2, 17, 13)).resize((8, 8), bilinear))

large = scene(200, 120)
large.save(path("large.jpg"), quality=95)
expect("shrunk", Image.open(path("large.jpg")).resize((20, 12), bilinear))

small.save(path("folder/birds/2.png"))
large.resize((20, 30)).save(path("folder/birds/10.JPEG"), quality=90)
small.save(path("folder/birds/more/1.jpg"), quality=90)
small.convert("L").save(path("folder/Cats/a.jpg"), quality=90)
with open(path("folder/Cats/notes.txt"), "w") as file:
    file.write("no picture\n")

np.savez_compressed(path("expected.npz"), **expected)
