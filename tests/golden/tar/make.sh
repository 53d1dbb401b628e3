#!/usr/bin/env bash
# Writes the archives in this folder with GNU tar and Python's tarfile. They have three samples with a
# picture, a number and an array, one sample with a name of more than 100 bytes, and other files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
here=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

/usr/bin/python3 - "$here/../pictures" <<'PYTHON'
import os, struct, sys

long = "a" * 60 + "/" + "b" * 60
os.makedirs("train/" + long)
for i, key in enumerate(["0001", "0002", long + "/0003"]):
    with open(f"train/{key}.png", "wb") as file:
        file.write(open(sys.argv[1] + "/rgb.png", "rb").read())
    with open(f"train/{key}.cls", "w") as file:
        file.write(f"{i + 5}\n")
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    with open(f"train/{key}.emb.npy", "wb") as file:
        file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header)
        file.write(struct.pack("<2f", i, -i))
with open("train/README", "w") as file:
    file.write("no sample\n")
with open("train/0001.txt", "w") as file:
    file.write("no field\n")
os.symlink("0001.png", "train/link.png")
os.link("train/0001.cls", "train/zz.cls.hard")
PYTHON

for format in ustar gnu pax; do
  tar --format=$format --sort=name --owner=0 --group=0 --mtime=@0 -b 1 -cf "$here/$format.tar" train
done
tar --format=gnu --sort=name -b 1 -cf - train | gzip -9n >"$here/gnu.tar.gz"
bzip2 -k <"$here/pax.tar" >"$here/pax.tar.bz2"
xz <"$here/ustar.tar" >"$here/ustar.tar.xz"
/usr/bin/python3 - "$here/python.tar" <<'PYTHON'
import sys, tarfile

with tarfile.open(sys.argv[1], "w") as archive:  # pax
    archive.add("train")
PYTHON
truncate -s 1M sparse.cls
tar --format=gnu --sparse -b 1 -cf "$here/sparse_gnu.tar" sparse.cls
tar --format=pax --sparse -b 1 -cf "$here/sparse_pax.tar" sparse.cls
