#!/usr/bin/env bash
# Breaks each rule of floors.sh once, in a small tree of its own, and expects that exactly this is said.
set -euo pipefail

floors=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/floors.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# tree FILE CONTENT: a tree without a fault, but for the file.
tree() {
  rm -rf "${work:?}/tree"
  mkdir -p "$work"/tree/{spmd/mesh,transport,actors/device/kernels,examples,tests}
  cd "$work/tree"
  printf '#include <vector>\n#include <fmt/format.h>\n#include <weft/spmd/mesh/b.hpp>\n' >spmd/a.cpp
  printf '#include <unistd.h>\n#include <boost/interprocess/x.hpp>\n' >transport/a.cpp
  printf '#include <caf/all.hpp>\ncaf::actor x;\n' >actors/device/device_actor.cpp
  printf '#include <oneapi/dnnl/dnnl.hpp>\n' >actors/device/kernels/dot.cpp
  printf 'int x;\n%.0s' {1..500} >tests/long_test.cpp
  mkdir -p "$(dirname "$1")"
  printf "$2" >"$1"
}

# refuses FILE CONTENT SAID: the fault and nothing else is said.
refuses() {
  tree "$1" "$2"
  local said
  if said=$("$floors" "$work/tree"); then
    echo "accepted in $1: $2"
    failed=1
  elif [[ $said != "$1:$3" ]]; then
    printf 'for %s\n  expected: %s\n  said:     %s\n' "$2" "$1:$3" "$said"
    failed=1
  fi
}

tree spmd/c.hpp 'int x;\n'
"$floors" "$work/tree" || failed=1

refuses spmd/c.hpp '#include <weft/transport/board.hpp>\n' '1: not to be included on the floor spmd/'
refuses spmd/c.hpp '#include <unistd.h>\n' '1: not to be included on the floor spmd/'
refuses spmd/c.hpp '\n#include <thread>\n' \
  '2: spmd/ holds values: no thread, clock, file or chance'
refuses transport/c.cpp '#include <weft/actors/log.hpp>\n' \
  '1: not to be included on the floor transport/'
refuses actors/c.cpp '#include <weft/tools/weft/plan.hpp>\n' \
  '1: not to be included on the floor actors/'
refuses actors/device/device.cpp 'caf::actor x;\n' \
  '1: caf stands only in *_actor.*, messages.* and system.*'
refuses examples/c.cpp '#include <caf/all.hpp>\n' \
  '1: caf stands only in *_actor.*, messages.* and system.*'
refuses actors/device/c.cpp '#include <oneapi/dnnl/dnnl.hpp>\n' \
  '1: oneDNN stands only in actors/device/kernels/'
refuses examples/c.cpp '#include "c.hpp"\n' '1: includes are written <weft/...>'
refuses spmd/c.hpp "$(printf 'int x;\\n%.0s' {1..151})" '151: a header has at most 150 lines'
refuses spmd/c.cpp "$(printf 'int x;\\n%.0s' {1..401})" '401: a source has at most 400 lines'
refuses tests/c.cpp "// $(printf 'x%.0s' {1..98})\n" '1: a line has at most 100 columns'
refuses spmd/CMakeLists.txt '\tadd_library(x)\n' '1: no tabs'
refuses tests/c.cpp '// TODO: all of it\n' '1: what is left to do is done, or is an issue'
refuses tests/c.cpp '\nstd::this_thread::sleep_for(1s);\n' \
  '2: a test waits for what happens, not for a time'

exit "$failed"
