"""torch's DataLoader over a folder of pictures: FOLDER BATCH. Each line of stdin is answered by
{"images": ..., "wall_s": ..., "cpu_s": ...} of one epoch, which this process reads by itself."""

import json
import sys
import time

import torch
import torchvision
from torchvision import transforms

MEAN = (0.485, 0.456, 0.406)
STDDEV = (0.229, 0.224, 0.225)


def main():
    folder, batch = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    pictures = torchvision.datasets.ImageFolder(folder, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.ToTensor(),
        transforms.Normalize(MEAN, STDDEV)]))
    loader = torch.utils.data.DataLoader(pictures, batch_size=batch, shuffle=True, drop_last=True)
    for _ in sys.stdin:
        wall, cpu, images = time.perf_counter(), time.process_time(), 0
        for x, _ in loader:
            images += len(x)
        print(json.dumps({"images": images, "wall_s": time.perf_counter() - wall,
                          "cpu_s": time.process_time() - cpu}), flush=True)


main()
