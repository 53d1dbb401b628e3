#!/usr/bin/env python3
"""Writes steps.npz: the results of Pillow's functions, which torchvision calls, for a picture.

Needs PyPI's pillow and numpy. Arrays are [1, 3, height, width].
"""

import os

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

here = os.path.dirname(os.path.abspath(__file__))
y, x = np.mgrid[0:15, 0:22]
pixels = np.stack([255 * x / 21, 255 * y / 14, 127 + 120 * np.sin((x + y) / 5)], -1)
pixels[2:6, 3:9] = (250, 20, 60)
pixels[8:12, 12:15] = (90, 90, 90)
image = Image.fromarray(pixels.astype(np.uint8))


def shifted(image, part):
    """Does the same as torchvision's adjust_hue() for a PIL image."""
    hue, saturation, value = image.convert("HSV").split()
    numbers = np.array(hue, dtype=np.uint8)
    numbers = (numbers.astype(np.int32) + int(part * 255)) % 256
    hue = Image.fromarray(numbers.astype(np.uint8))
    return Image.merge("HSV", (hue, saturation, value)).convert("RGB")


made = {
    "image": image,
    "brightness": ImageEnhance.Brightness(image).enhance(1.3),
    "contrast": ImageEnhance.Contrast(image).enhance(0.6),
    "saturation": ImageEnhance.Color(image).enhance(1.7),
    "hue": shifted(image, 0.2),
    "sharpness": ImageEnhance.Sharpness(image).enhance(1.8),
    "posterize": ImageOps.posterize(image, 3),
    "solarize": ImageOps.solarize(image, 100),
    "auto_contrast": ImageOps.autocontrast(image.point(lambda value: value // 2 + 40)),
    "equalize": ImageOps.equalize(image),
    "rotated": image.rotate(30, Image.Resampling.NEAREST, fillcolor=(7, 7, 7)),
    "bilinear": image.rotate(-50, Image.Resampling.BILINEAR),
}
np.savez_compressed(os.path.join(here, "steps.npz"),
                    **{name: np.asarray(each).transpose(2, 0, 1)[None] for name, each in made.items()})
