#!/usr/bin/env python3
"""Writes WebP, pictures with EXIF's orientation, and PNGs of 16 bits with Pillow, and their pixels.

Needs PyPI's pillow and numpy. more.npz has, for each picture, the pixels of
ImageOps.exif_transpose(image).convert("RGB"), or of gray ones of 16 bits the numbers as they are.
"""

import os

import numpy as np
from PIL import Image, ImageOps

here = os.path.dirname(os.path.abspath(__file__))
expected = {}


def path(name):
    return os.path.join(here, name)


def scene(width, height):
    """Returns smooth gradients, and a square far from the middle."""
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([255 * x / (width - 1), 255 * y / (height - 1), 0 * x + 90], -1)
    pixels[1 : height // 3, 2 : width // 4] = (250, 20, 60)
    return Image.fromarray(pixels.astype(np.uint8))


def oriented(number):
    exif = Image.Exif()
    exif[0x0112] = number
    exif[0x010E] = "a description"
    return exif


def keep(name):
    expected[name] = np.asarray(ImageOps.exif_transpose(Image.open(path(name))).convert("RGB"))[None]


small = scene(24, 16)
rgba = small.copy()
rgba.putalpha(Image.linear_gradient("L").resize((24, 16)))
small.save(path("lossless.webp"), lossless=True)
small.save(path("lossy.webp"), quality=90)
rgba.save(path("alpha.webp"), lossless=True, exact=True)
small.save(path("animated.webp"), save_all=True, append_images=[small.rotate(180)])
small.save(path("turned.webp"), lossless=True, exif=oriented(6))
small.save(path("turned.png"), exif=oriented(8))
for number in range(1, 9):
    small.save(path(f"turned{number}.jpg"), quality=90, exif=oriented(number))
for name in ["lossless.webp", "lossy.webp", "alpha.webp", "turned.webp", "turned.png"]:
    keep(name)
for number in range(1, 9):
    keep(f"turned{number}.jpg")

y, x = np.mgrid[0:16, 0:24]
deep = (x * 2700 + y * 111).astype(np.uint16)
Image.fromarray(deep).save(path("gray16.png"))
expected["gray16.png"] = deep.astype(np.int32)[None]

np.savez_compressed(path("more.npz"), **expected)
