#!/usr/bin/env bash
# links_without.sh PROGRAM NAME...: runs PROGRAM, and fails if it is linked with a library whose
# name contains a NAME or has a symbol of a namespace NAME. links_without.sh ./app caf boost
set -euo pipefail

program=$1
shift
"$program"
libraries=$(ldd "$program")
symbols=$(nm -C "$program")
for name in "$@"; do
  if grep "lib$name" <<<"$libraries" || grep -m 5 "\b$name::" <<<"$symbols"; then
    echo "$program is linked with $name" >&2
    exit 1
  fi
done
