#!/usr/bin/env bash
# floors.sh ROOT: checks the source tree ROOT against the table of floors and rooms and the limits of
# style: what each folder includes, cycles of public headers, which folders may use CAF, oneDNN and the
# CPU's engine, how many headers a room has, how long files and lines are.
# Prints "FILE:LINE: what is wrong" and fails, or prints nothing.
set -euo pipefail

cd "$1"

readonly standard='<[a-z_0-9]+>'
# These headers belong to POSIX, Linux and the compiler.
readonly posix='<((arpa|linux|net|netinet|sys)/[a-z_0-9]+|cpuid|cxxabi|dirent|dlfcn|elf|emmintrin|execinfo|fcntl|immintrin|link|netdb|poll|pthread|pwd|sched|signal|spawn|stdlib|termios|time|unistd)\.h>'
readonly threads='<(thread|mutex|shared_mutex|condition_variable|semaphore|latch|barrier|future)>'
readonly world='<(chrono|ctime|filesystem|fstream|iostream|random)>'

found=0
# say WHAT: reports every line of stdin, which is a place ("FILE:LINE:..."), as a fault.
say() {
  local place
  while IFS= read -r place; do
    printf '%s: %s\n' "$(cut -d: -f1,2 <<<"$place")" "$1"
    found=1
  done
}

folders=()
product=()  # all but the tests
for folder in include schema spmd data transport chips inspect actors tools examples bench tests; do
  [[ -e $folder ]] || continue
  folders+=("$folder")
  if [[ $folder != tests ]]; then product+=("$folder"); fi
done

matching() { grep -P -- "$1" || true; }
but() { grep -vP -- "$1" || true; }
sources() { find "$@" \( -name '*.cpp' -o -name '*.hpp' -o -name '*.fbs' \) | sort; }
# "FILE:LINE:<header>" or "FILE:LINE:"header"".
includes() {
  sources "$@" | xargs -r grep -HnoP '^\s*#\s*include\s*\K[<"].*[>"]' /dev/null || true
}

# floor FOLDER ALLOWED...: requires that every include of the folder matches one of the patterns.
floor() {
  [[ -d $1 ]] || return 0
  local folder=$1 allowed
  shift
  allowed=$(IFS='|'; echo "$*")
  say "not to be included on the floor $folder/" < <(includes "$folder" | but ":($allowed)\$")
}

# The public headers that need no job, and those of jobs.
readonly tensor_api='<weft/(along_dim|atom|attention|batch|compile|compile_impl|containers|control_flow|conv_layers|convolution|creation|custom_call|custom_op|data_files|data_transforms|dataset|debug|dlpack|dropout_layers|element|error|functional|gradients|host_number|hybrid_mesh|image_files|image_transforms|init|interpolate|item_random|large_scale_optimizers|local_data|lora|losses|mesh|mesh_scope|metrics|module|multi_head_attention|nn|norm_layers|ops|optim|optimizers|packing|parameter_average|partition_spec|plateau_schedule|presets|print|products|random|recurrent|reductions|sampler|schedule|shapes|shard_map|storage|stream|tar_files|tensor|tensor_tree|text_files|tokenizer|transformer|transforms|type)\.hpp>'
readonly job_api='<weft/(backend_config|callback|checkpoint_config|checkpoint_manager|chip|choice|config|device|device_loader|failure_config|host_values|job|log|loop|result|scaling_config|spdlog_sink|state|tls|train_context|trainer|validation_config|weft)\.hpp>'

floor include "$standard" '<(fmt|nlohmann|spdlog)/.*>' "$tensor_api" "$job_api"
floor spmd "$standard" '<fmt/.*>' "$tensor_api" '"spmd/.*"'
floor data "$standard" "$posix" '<(fmt|nlohmann)/.*>' \
  '<(archive|archive_entry|jerror|jpeglib|png|xxhash|zlib)\.h>' \
  '<(curl|libexif|unicode|webp)/[a-z0-9-]+\.h>' "$tensor_api" '"(spmd|data)/.*"'
floor transport "$standard" "$posix" '<(fmt|flatbuffers|boost/interprocess|nlohmann)/.*>' \
  '<xxhash\.h>' '<weft_schema/.*>' "$tensor_api" '"(spmd|data|transport)/.*"'
floor chips "$standard" "$posix" '<(fmt|nlohmann|oneapi|xbyak)/.*>' \
  "$tensor_api" '<weft/(chip|device)\.hpp>' '"(spmd|data|transport|chips)/.*"'
floor inspect "$standard" "$posix" '<(fmt|nlohmann)/.*>' '<(dwarf|elfutils/libdwfl|xxhash)\.h>' \
  "$tensor_api" '"(spmd|data|transport|inspect)/.*"'
floor actors "$standard" "$posix" '<(fmt|spdlog|nlohmann|caf|openssl)/.*>' \
  "$tensor_api" "$job_api" '"(spmd|data|transport|chips|inspect|actors)/.*"'
floor examples "$standard" "$posix" '<(fmt|spdlog|nlohmann|CLI)/.*>' '<(httplib|xxhash)\.h>' \
  "$tensor_api" "$job_api" '"examples/.*"'
say 'a header of the tensor API knows nothing of jobs' < <(
  includes include | matching "^include/${tensor_api:1:-1}:" | matching ":$job_api\$")
say 'the headers include each other in a circle' < <(
  includes include | matching ':<weft/' | tr -d '<>' | awk -F: '
    function reaches(from, to, seen,   count, next_ones, i) {
      if (from == to) return 1
      if (from in seen) return 0
      seen[from]
      count = split(included[from], next_ones, " ")
      for (i = 1; i <= count; ++i) if (reaches(next_ones[i], to, seen)) return 1
      return 0
    }
    {
      place[NR] = $1 ":" $2
      header[NR] = substr($1, length("include/") + 1)
      other[NR] = $3
      included[header[NR]] = included[header[NR]] " " $3
    }
    END {
      for (line = 1; line <= NR; ++line) {
        split("", seen)
        if (reaches(other[line], header[line], seen)) print place[line]
      }
    }')

# Each room may include those before it.
readonly rooms=(
  spmd/{base,mesh,program,control,rules,target,ops,text,reference,grad,fusion,passes,plan,tensor,functions,nn}
  data/{files,remote,items,formats,pytorch,images,datasets,text}
  transport/{format,memory,board,blackbox,job,reduce,collectives,state,channel,storage,resume}
  chips/engine chips/cpu/{loops,jit,onednn,attention,kernels} chips/cpu chips/registry
  inspect/{process,snapshot,why,views,programs,history,profile,page}
  actors/{process,protocol,supervision,link,device,runtime,data,worker,trainer,launch,host,job}
)
say 'this room is not in the list of rooms' < <(
  sources spmd data transport chips inspect actors | sed 's|/[^/]*$||' | sort -u |
    grep -vxF "$(printf '%s\n' "${rooms[@]}")" | sed 's|$|:1|' || true)
say 'the header is of a later room' < <(
  includes spmd data transport chips inspect actors | matching ':"' | tr -d '"' | awk -F: -v order="${rooms[*]}" '
    function room(path) { sub("/[^/]*$", "", path); return at[path] }
    BEGIN { n = split(order, rooms, " "); for (i = 1; i <= n; ++i) at[rooms[i]] = i }
    room($3) > room($1)')
say 'another header has a type of this name' < <(
  sources "${product[@]}" | but '^bench/' | matching '\.hpp$' | xargs -r awk '
    /^namespace / { space = $2 }
    /^(struct|class|enum class) (alignas\([0-9]+\) )?[A-Za-z0-9_]+[^<;]*$/ {
      name = $0
      sub(/^(struct|class|enum class) (alignas\([0-9]+\) )?/, "", name)
      if (name ~ /^[A-Za-z0-9_]+::/) next
      sub(/[^A-Za-z0-9_].*/, "", name)
      if ((space, name) in place) print FILENAME ":" FNR
      place[space, name]
    }')
say 'only chips/registry/registry.cpp, where engines are made, names a kind of chip' < <(
  includes "${product[@]}" | but '^(bench/|chips/cpu/|chips/registry/registry\.cpp:)' |
    matching ':"chips/cpu/')
say 'a room has at most 12 headers' < <(
  sources spmd data transport chips inspect actors | matching '\.hpp$' | xargs -r dirname | sort | uniq -c |
    awk '$1 > 12 {print $2 ":" $1}')

say 'spmd/ holds values: no thread, clock, file or chance' < <(
  includes "${product[@]}" | matching "^spmd/.*:($threads|$world)\$")
say 'includes are written <weft/NAME.hpp> or "floor/room/NAME.hpp"' < <(
  includes "${folders[@]}" | matching ':(<weft/.*/|"[^/]+")')
say 'caf stands only in *_actor.*, messages.* and system.*' < <(
  sources "${product[@]}" | but '(_actor|/messages|/system)\.[a-z]+$' |
    xargs -r grep -HnP '\bcaf::|<caf/' /dev/null || true)
say 'oneDNN stands only in chips/cpu/onednn/' < <(
  sources "${product[@]}" | but '^chips/cpu/onednn/' |
    xargs -r grep -HnP '\bdnnl::|<oneapi/' /dev/null || true)
say 'libcurl stands only in data/remote/' < <(
  sources "${product[@]}" | but '^data/remote/' | xargs -r grep -HnP '<curl/' /dev/null || true)
say 'xbyak stands only in chips/cpu/jit/' < <(
  sources "${product[@]}" | but '^chips/cpu/jit/' |
    xargs -r grep -HnP '\bXbyak::|<xbyak/' /dev/null || true)

say 'a header has at most 150 lines' < <(
  sources "${product[@]}" | matching '\.hpp$' | xargs -r awk 'FNR == 151 {print FILENAME ":" FNR}')
say 'a source has at most 400 lines' < <(
  sources "${product[@]}" | matching '\.cpp$' | xargs -r awk 'FNR == 401 {print FILENAME ":" FNR}')

# lines PATTERN: prints the matching lines of the sources and of the build's files.
lines() {
  {
    sources "${folders[@]}"
    find . -path ./build -prune -o \( -name CMakeLists.txt -o -name '*.cmake*' \) -print | cut -c3-
  } | LC_ALL=C.UTF-8 xargs -r grep -HnP -- "$1" /dev/null || true
}
say 'a line has at most 100 columns' < <(lines '^.{101}')
say 'no tabs' < <(lines '\t')
say 'what is left to do is done, or is an issue' < <(lines '\b(TODO|FIXME|XXX)\b')
# A folder's tests are compiled as one source: each has its own namespace, so that helpers don't collide.
say 'the namespace of a test ends in the name of its file' < <(
  find tests -name '*_test.cpp' | sort | xargs -r awk '
    FNR == 1 {
      name = FILENAME
      sub(/.*\//, "", name)
      sub(/\.cpp$/, "", name)
    }
    /^namespace weft/ && $2 !~ ("::" name "$") {print FILENAME ":" FNR}')
say 'a test waits for what happens, not for a time' < <(
  lines '\b(sleep|usleep|nanosleep|sleep_for|sleep_until)\s*\(' | matching '^tests/')

exit "$found"
