#!/usr/bin/env bash
# dump.sh BUILD OUT [EXAMPLE]...: writes what a refactoring must not change to the folder OUT. These
# are plans and costs of random programs and the programs, plans and reports of the examples that
# train, without source lines and times. `diff -r` of the folders from before and after shows what
# has changed. With EXAMPLEs, only they are run, and 20 random programs are planned.
set -euo pipefail

readonly build=$(realpath "$1") out=$2 only=" ${*:3} "
readonly root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$build/bin/plan_dump" "$([[ $only == '  ' ]] && echo 2000 || echo 20)" >"$out/random_programs.txt"

# Removes line numbers of source files, which a longer comment changes.
without_lines() { sed -E 's/([a-z_]+\.[ch]pp):[0-9]+/\1/g'; }

# example NAME ARGUMENTS...
example() {
  local name=$1 home=$work/$1 run
  shift
  [[ $only == '  ' || $only == *" $name "* ]] || return 0
  mkdir -p "$home" "$out/$name"
  HOME=$home WEFT_LOG=off "$build/bin/${name%%.*}" --workers 2 --chips 2 "$@" >"$home/output" 2>&1 ||
    { cat "$home/output" >&2; echo "dump.sh: $name failed" >&2; return 1; }
  run=$(echo "$home"/weft_runs/*)
  local program
  for program in "$run"/programs/*.txt; do without_lines <"$program" >"$out/$name/$(basename "$program")"; done
  for program in "$run"/programs/*.weftplan; do
    "$build/bin/weft" plan "$program" | without_lines >"$out/$name/$(basename "$program" .weftplan).plan.txt"
  done
  python3 - "$run/result.json" >"$out/$name/reports.txt" <<'PYTHON'
import json, sys
result = json.load(open(sys.argv[1]))
for report in result['metrics_history'] + [result['metrics']]:
    kept = {k: v for k, v in sorted(report.items()) if not k.startswith(('step_us', 'seconds', 'time'))
            and 'per_second' not in k}
    print(json.dumps(kept))
PYTHON
}

text=(--text "$root/LICENSE" --batch 16)
example digits --epochs 3
example char_gpt --layers 2 --size 32 --heads 4 --length 16 "${text[@]}" --steps 6
example char_gpt.fsdp --layers 2 --size 32 --heads 4 --length 16 "${text[@]}" --steps 6 --fsdp
example char_gpt.tp --layers 2 --size 32 --heads 4 --length 16 "${text[@]}" --steps 6 --tp
# `tools/dev data fashion-mnist` gets the images.
if [[ -e $build/../data/fashion-mnist ]]; then
  example mnist_cnn --data "$build/../data/fashion-mnist" --epochs 1 --batch 6000
else
  echo "dump.sh: mnist_cnn is left out, because there is no $build/../data/fashion-mnist" >&2
fi
example gpt_gqa --size 16 --heads 2 --kv_heads 1 --layers 2 --length 8 "${text[@]}" --steps 6
example lstm_lm --size 16 --length 8 "${text[@]}" --steps 6
example moe --size 16 --heads 2 --length 8 --layers 2 --experts 4 "${text[@]}" --steps 6
example pipeline --size 16 --heads 2 --length 8 --layers 4 "${text[@]}" --steps 6
example gan --batch 12 --steps 6
example resnet --batch 12 --width 4 --steps 6
example vae --batch 12 --steps 6
example vit --batch 12 --size 16 --heads 2 --layers 2 --steps 6
