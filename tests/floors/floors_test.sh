#!/usr/bin/env bash
# Breaks each rule of floors.sh once, in a small tree, and expects exactly the message of this rule.
set -euo pipefail

floors=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/floors.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# tree FILE CONTENT: makes a tree in which only FILE can break a rule.
tree() {
  rm -rf "${work:?}/tree"
  mkdir -p "$work"/tree/{include/weft/{job,nn,ops,sharding,tensor},spmd/{mesh,tensor},transport/board,chips/engine}
  mkdir -p "$work"/tree/{data,chips/{cpu/onednn,registry},actors/{device,worker,job},tools/weft}
  mkdir -p "$work"/tree/{inspect,examples,tests}
  cd "$work/tree"
  touch spmd/{mesh/b,tensor/a}.hpp transport/board/board.hpp chips/engine/engine.hpp
  touch chips/cpu/onednn/dot.hpp tools/weft/plan.hpp include/weft/nn/module.hpp
  printf '#include <vector>\n' >include/weft/sharding/mesh.hpp
  printf '#include <weft/sharding/mesh.hpp>\n#include <nlohmann/json.hpp>\n' >include/weft/job/job.hpp
  printf '#include <weft/sharding/mesh.hpp>\n' >include/weft/tensor/type.hpp
  printf '#include <weft/sharding/mesh.hpp>\n#include <weft/tensor/type.hpp>\n' >include/weft/tensor/tensor.hpp
  printf '#include <weft/sharding/mesh.hpp>\n' >spmd/mesh/mesh.cpp
  printf '#include <weft/tensor/tensor.hpp>\n' >spmd/tensor/tensor.cpp
  printf '#include <weft/job/job.hpp>\n#include "spmd/tensor/a.hpp"\n' >actors/job/job.cpp
  printf '#include <fmt/format.h>\n#include <weft/sharding/mesh.hpp>\n#include "spmd/mesh/b.hpp"\n' >spmd/tensor/a.cpp
  printf '#include <unistd.h>\n#include <boost/interprocess/x.hpp>\n' >transport/board/a.cpp
  printf '#include <caf/all.hpp>\ncaf::actor x;\n' >actors/device/device_actor.cpp
  printf '#include <oneapi/dnnl/dnnl.hpp>\n' >chips/cpu/onednn/dot.cpp
  printf '#include "chips/engine/engine.hpp"\n#include "chips/cpu/onednn/dot.hpp"\n' >chips/cpu/executor.hpp
  printf '#include "chips/cpu/executor.hpp"\n#include "transport/board/board.hpp"\n' \
    >chips/registry/registry.cpp
  printf 'int x;\n%.0s' {1..500} >tests/long_test.cpp
  printf 'namespace weft::mesh_test {\n}\n' >tests/mesh_test.cpp
  mkdir -p "$(dirname "$1")"
  printf "$2" >"$1"
}

# refuses FILE CONTENT SAID: expects that floors.sh reports this fault and nothing else.
refuses() {
  tree "$1" "$2"
  local said
  if said=$("$floors" "$work/tree" 2>&1); then
    echo "accepted in $1: $2"
    failed=1
  elif [[ $said != "$1:$3" ]]; then
    printf 'for %s\n  expected: %s\n  said:     %s\n' "$2" "$1:$3" "$said"
    failed=1
  fi
}

tree spmd/mesh/c.hpp 'int x;\n'
"$floors" "$work/tree" || failed=1

later='the header is of a later room'
refuses spmd/mesh/c.hpp '#include "transport/board/board.hpp"\n' "transport/board/board.hpp: $later"
refuses spmd/mesh/c.hpp '#define OTHER <weft/job/job.hpp>\n#include OTHER\n' "include/weft/job/job.hpp: $later"
refuses spmd/mesh/c.hpp '// #include <weft/job/job.hpp>\n#if 0\n#include "actors/job/none.hpp"\n#endif\n#include <unistd.h>\n' \
  '5: not to be included on the floor spmd/'
# A public header belongs to the room with a source of its name, in whichever folder the header is.
refuses spmd/mesh/c.cpp '#include <weft/tensor/tensor.hpp>\n' "include/weft/tensor/tensor.hpp: $later"
refuses spmd/mesh/c.hpp '#include <unistd.h>\n' '1: not to be included on the floor spmd/'
refuses spmd/mesh/c.hpp '\n#include <thread>\n' \
  '2: spmd/ holds values: no thread, clock, file or chance'
refuses spmd/mesh/c.cpp '#include "spmd/tensor/a.hpp"\n' "spmd/tensor/a.hpp: $later"
refuses transport/board/c.cpp '#include <weft/job/job.hpp>\n' "include/weft/job/job.hpp: $later"
refuses tools/weft/plan/c.cpp '#include "tools/weft/plan.hpp"\n' "tools/weft/plan.hpp: $later"
refuses include/weft/ops/elementwise.hpp '#include "spmd/mesh/b.hpp"\n' \
  '1: not to be included on the floor include/'
refuses include/weft/tensor/tensor.hpp '#include <weft/job/job.hpp>\n' "include/weft/job/job.hpp: $later"
refuses transport/board/c.cpp '#include <sqlite3.h>\n' \
  '1: not to be included on the floor transport/'
refuses actors/job/c.cpp '#include <sqlite3.h>\n' '1: not to be included on the floor actors/'
refuses examples/c.cpp '#include <sqlite3.h>\n' '1: not to be included on the floor examples/'
refuses spmd/mesh/b.hpp 'namespace weft {\nstruct Box {\n};\nclass Box;\nclass Box : public Shape {\n};\n}\n' \
  '5: another header has a type of this name'
refuses chips/engine/c.cpp '#include "chips/cpu/executor.hpp"\n' \
  "chips/cpu/executor.hpp: $later
chips/engine/c.cpp:1: only chips/registry/registry.cpp, where engines are made, names a kind of chip"
refuses actors/worker/c.cpp '#include "chips/cpu/executor.hpp"\n' \
  '1: only chips/registry/registry.cpp, where engines are made, names a kind of chip'
refuses tools/weft/c.cpp '#include "chips/cpu/onednn/dot.hpp"\n' \
  '1: only chips/registry/registry.cpp, where engines are made, names a kind of chip'
refuses actors/job/c.cpp '#include "tools/weft/plan.hpp"\n' "tools/weft/plan.hpp: $later"
refuses actors/device/device.cpp 'caf::actor x;\n' \
  '1: caf stands only in actors/caf/, *_actor.*, messages.*, system.*, <weft/caf.hpp>, its example and bench/calls/'
refuses examples/c.cpp '#include <caf/all.hpp>\n' \
  '1: caf stands only in actors/caf/, *_actor.*, messages.*, system.*, <weft/caf.hpp>, its example and bench/calls/'
refuses chips/engine/c.cpp '#include <oneapi/dnnl/dnnl.hpp>\n' \
  '1: oneDNN stands only in chips/cpu/onednn/'
refuses data/files/c.cpp '#include <curl/curl.h>\n' \
  '1: libcurl stands only in data/remote/'
refuses chips/cpu/c.cpp '#include <xbyak/xbyak.h>\n' \
  '1: xbyak stands only in chips/cpu/jit/'
for include in '"c.hpp"' '<weft/mesh/parts/mesh.hpp>'; do
  refuses tests/c.cpp "#include $include\n" \
    '1: includes are written <weft/NAME.hpp>, <weft/SUBJECT/NAME.hpp> or "floor/room/NAME.hpp"'
done
refuses spmd/mesh/c.hpp "$(printf 'int x;\\n%.0s' {1..151})" '151: a header has at most 150 lines'
refuses spmd/mesh/c.cpp "$(printf 'int x;\\n%.0s' {1..401})" '401: a source has at most 400 lines'
refuses tests/c.cpp "// $(printf 'x%.0s' {1..98})\n" '1: a line has at most 100 columns'
refuses spmd/CMakeLists.txt '\tadd_library(x)\n' '1: no tabs'
refuses tests/c.cpp '// TODO: all of it\n' '1: remaining work is in an issue, not in a comment'
refuses tests/c.cpp '\nstd::this_thread::sleep_for(1s);\n' \
  '2: a test waits for what happens, not for a time'
refuses tests/mesh_test.cpp '\nnamespace weft {\n}\n' \
  '2: the namespace of a test ends in the name of its file'
refuses tests/mesh_test.cpp 'namespace weft::testing::other_test {\n}\n' \
  '1: the namespace of a test ends in the name of its file'

circle='the headers include each other in a circle'
tree include/weft/tensor/type.hpp '#include <weft/tensor/tensor.hpp>\n'
[[ $("$floors" "$work/tree") == "include/weft/tensor/tensor.hpp:1: $circle
include/weft/tensor/type.hpp:1: $circle" ]] || failed=1
# The next trees have a room that isn't in the list, and one that only its own sources include.
tree spmd/cellar/c.cpp 'int x;\n'
[[ $("$floors" "$work/tree") == 'spmd/cellar:1: this room is not in the list of rooms' ]] || failed=1
tree data/files/c.hpp 'int x;\n'
printf '#include "data/files/c.hpp"\n' >data/files/c.cpp
[[ $("$floors" "$work/tree") == 'data/files:1: nobody uses this room' ]] || failed=1
printf '#include "data/files/c.hpp"\n' >transport/board/c.cpp
"$floors" "$work/tree" || failed=1
# A header in a subfolder belongs to the room whose source has its name.
tree spmd/nn/module.cpp '#include <weft/nn/module.hpp>\n'
printf '#include <weft/nn/module.hpp>\n' >spmd/mesh/c.cpp
[[ $("$floors" "$work/tree") == "spmd/mesh/c.cpp:include/weft/nn/module.hpp: $later" ]] || failed=1
# Files that git doesn't track aren't checked.
tree prefix/include/weft/c.hpp '\t// TODO\n'
mkdir -p include/weft/left
printf '\t// TODO\n' >include/weft/left/c.hpp
git init -q .
git add spmd actors chips transport tools include/weft/{job,nn,ops,sharding,tensor} examples tests
"$floors" "$work/tree" || failed=1
tree spmd/mesh/c.cpp 'int x;\n'
for i in {1..12}; do touch "$work/tree/spmd/mesh/$i.hpp"; done
[[ $("$floors" "$work/tree") == 'spmd/mesh:13: a room has at most 12 headers' ]] || failed=1

exit "$failed"
