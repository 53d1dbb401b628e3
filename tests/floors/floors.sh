#!/usr/bin/env bash
# floors.sh ROOT: checks that each file of the source tree ROOT includes only headers that its floor
# and its room may include, and checks the limits of style. Needs no build. Prints "FILE:LINE: what
# is wrong" for each fault and fails, or prints nothing.
set -euo pipefail
cd "$1"

readonly standard='<[a-z_0-9]+>'
# These patterns match headers of POSIX, Linux and the compiler.
readonly posix='<((arpa|linux|net|netinet|sys)/[a-z_0-9]+|cpuid|cxxabi|dirent|dlfcn|elf|emmintrin|execinfo|fcntl|ifaddrs|immintrin|link|netdb|poll|pthread|pwd|sched|signal|spawn|stdlib|termios|time|unistd)\.h>'
readonly impure='<(thread|mutex|shared_mutex|condition_variable|semaphore|latch|barrier|future|chrono|ctime|filesystem|fstream|iostream|random)>'

found=0
# say WHAT: reads places ("FILE:LINE:...") from stdin. Prints each with WHAT, which is then a fault.
say() { awk -F: -v what="$1" 'NF {print $1 ":" $2 ": " what; n = 1} END {exit n}' || found=1; }
readonly floors=(spmd data transport chips inspect actors tools)
readonly product=(include schema "${floors[@]}" examples bench)
matching() { grep -P -- "$1" || true; }
but() { grep -vP -- "$1" || true; }
# Files that git doesn't track, such as those of an install prefix, are not part of the tree.
files=$(if [[ -e .git ]]; then git ls-files; else find . -type f | cut -c3-; fi | xargs ls -d 2>/dev/null)
sources() { matching "^($(IFS='|' && echo "$*"))/.*\.(cpp|hpp|fbs)$" <<<"$files"; }
# includes ROOM...: prints "FILE:LINE:<header>" or 'FILE:LINE:"header"' for each include.
includes() { sources "$@" | xargs -r grep -HnoP '^\s*#\s*include\s*\K[<"].*[>"]' /dev/null || true; }

# floor FOLDER ALLOWED...: checks every include of the folder. Each is a standard header, a header
# <weft/SUBJECT/...>, which the rooms below restrict further, or matches one of the patterns
# ALLOWED.
floor() {
  local folder=$1 allowed
  shift
  allowed=$(IFS='|' && echo "$standard|<weft/[a-z]+/.*>|$*")
  say "not to be included on the floor $folder/" < <(includes "$folder" | but ":($allowed)\$")
}
floor include '<(fmt|nlohmann|spdlog|caf)/.*>' '<weft/[a-z]+\.hpp>'
floor spmd '<fmt/.*>' '".*"'
floor data "$posix" '<(fmt|nlohmann)/.*>' '<(archive|archive_entry|jerror|jpeglib|png|xxhash|zlib)\.h>' \
  '<(curl|libexif|unicode|webp)/[a-z0-9-]+\.h>' '".*"'
floor transport "$posix" '<(fmt|flatbuffers|boost/interprocess|nlohmann|openssl|weft_schema)/.*>' '<xxhash\.h>' '<ucp/api/ucp\.h>' '".*"'
floor chips "$posix" '<(fmt|nlohmann|oneapi|xbyak)/.*>' '".*"'
floor inspect "$posix" '<(fmt|nlohmann)/.*>' '<(dwarf|elfutils/libdwfl|xxhash)\.h>' '".*"'
floor actors "$posix" '<(fmt|spdlog|nlohmann|caf|openssl)/.*>' '".*"'
floor examples "$posix" '<(fmt|spdlog|nlohmann|CLI|caf)/.*>' '<(httplib|xxhash)\.h>' '<weft/[a-z]+\.hpp>' \
  '"examples/.*"'
say 'the headers include each other in a circle' < <(
  includes include | matching ':<weft/' | tr -d '<>' | sed -E 's|^include/([^:]*):[0-9]+:| \1 |' |
    tsort 2>&1 >/dev/null | sed -n 's|^tsort: \(weft.*\)|include/\1:1|p' | sort)

# The sources of a room may include headers of the rooms before it in this list.
readonly rooms=(
  spmd/{base,mesh,program,control,rules,target,ops,text,reference,grad,fusion,passes,plan,stablehlo,tensor,functions,nn}
  data/{items,files,remote,formats,pytorch,images,text,datasets}
  transport/{format,memory,board,blackbox,job,reduce,wires,collectives,network,state,channel,lanes,actors,published,storage,resume}
  chips/engine chips/cpu/{loops,jit,onednn,attention,kernels} chips/cpu chips/pjrt/abi chips/pjrt chips/accelerator chips/registry
  inspect/{process,snapshot,hosts,why,views,systems,programs,history,profile,page}
  actors/{message,process,table,user,join,caf,protocol,commands,supervision,link,device,runtime,data,publish,session,worker,trainer,launch,host,agent,job,relay,keeper,attach,simulate}
  tools/weft/{doctor,devices,inspect,launch,hosts,manual,plan} tools/weft tools/weft-{page,worker} tools/private_caf
)
# A public header belongs to the room that has a source of its name, or else to the last room that
# it includes. These headers are exceptions: the first has sources of other names, and the rest are
# options of a job.
readonly homes='image_files data/images device chips/engine checkpoint_config actors/process state actors/process
  tls actors/process validation_config actors/process'
# Kernels are linked by name, the interpreter is the tests' oracle, and tools are programs.
readonly unused='^(chips/cpu/attention|spmd/reference|tools/.*)$'
say 'this room is not in the list of rooms' < <(sources "${floors[@]}" | sed 's|/[^/]*$||' | sort -u |
  grep -vxF "$(printf '%s\n' "${rooms[@]}")" | sed 's|$|:1|' || true)
# This folder gets for each source a line "FILE" and below it ".HEADER" or "..HEADER" for each
# header that the compiler reads for it.
record=$(mktemp -d)
trap 'rm -r "$record"' EXIT
sources include "${floors[@]}" examples | matching 'pp$' | xargs -r -P "$(nproc)" -n 40 bash -c '
  for file; do
    echo "$file"
    "${CXX:-g++}" -std=c++20 -x c++ -M -MG -MF /dev/null -H -nostdinc -nostdinc++ -Iinclude -I. \
      "$file" 2>&1 | sed -En "s|^(\.+) (\./)?|\1|p"
  done >"$(mktemp -p "$0")"' "$record"
orders=$(find "$record" -type f -exec cat {} + | awk -v all="${rooms[*]}" -v homes="$homes" -v unused="$unused" '
  function folder(path) { sub("/[^/]*$", "", path); return path in at ? at[path] : 1000 }
  function name(path) { sub(/.*\//, "", path); sub(/\..*/, "", path); return path }
  function room(path,   i, headers, other, last) {
    if (name(path) in given && path ~ /^include/) return given[name(path)]
    if (path !~ /^include/) return folder(path)
    if (path ~ /^include\/weft\/[a-z]+.hpp/) return 1000
    if (path in home) return home[path]
    for (i = split(included[path], headers); i > 0; --i) if ((other = room(headers[i])) > last) last = other
    return home[path] = last + 0
  }
  BEGIN {
    for (i = split(all, rooms); i > 0; --i) at[rooms[i]] = i
    for (i = split(homes, words); i > 1; i -= 2) given[words[i - 1]] = at[words[i]]
  }
  /^[^.]/ { source = reader[0] = $0; if (/hpp$/) has_headers[folder($0)] }
  /^[.]/ {
    depth = match($0, /[^.]/) - 1
    header = reader[depth] = substr($0, depth + 1)
    if (header ~ /^include/ && source ~ /^(spmd|data|actors|chips.engine).*cpp$/ &&
        name(header) == name(source) && folder(source) > home[header])
      home[header] = folder(source)
    if (!seen[reader[depth - 1], header]++)
      included[reader[depth - 1]] = included[reader[depth - 1]] " " header
  }
  END {
    for (path in included) {
      for (i = split(included[path], headers); i > 0; --i) {
        if (room(path) != room(headers[i])) used[room(headers[i])]
        if (path !~ /^examples/ && room(headers[i]) > room(path)) print path ":" headers[i]
      }
    }
    for (i in has_headers) if (rooms[i] && !(i in used) && rooms[i] !~ unused) print rooms[i] ":1"
  }' | sort)
say 'the header is of a later room' < <(but ':1$' <<<"$orders")
say 'nobody uses this room' < <(matching ':1$' <<<"$orders")
# The headers of actors/caf for the two versions of CAF have the same names.
say 'another header has a type of this name' < <(
  sources "${product[@]}" | but '^(bench/|actors/caf/.*_1\.hpp)' | matching '\.hpp$' | xargs -r awk '
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
  includes "${product[@]}" | but '^(bench/|chips/cpu/|chips/registry/registry\.cpp:)' | matching ':"chips/cpu/')
say 'a room has at most 12 headers' < <(sources "${floors[@]}" | matching '^(?!tools).*hpp$' |
  xargs -r dirname | sort | uniq -c | awk '$1 > 12 {print $2 ":" $1}')
say 'spmd/ holds values: no thread, clock, file or chance' < <(
  includes spmd | matching ":$impure\$")
say 'includes are written <weft/NAME.hpp>, <weft/SUBJECT/NAME.hpp> or "floor/room/NAME.hpp"' < <(
  includes "${product[@]}" tests | matching ':(<weft/.*/.*/|"[^/]+")')

# only NAME WHERE FILES PATTERN: checks that PATTERN matches only in FILES, which WHERE describes.
only() {
  say "$1 stands only in $2" < <(sources "${product[@]}" | but "$3" | xargs -r grep -HnP "$4" || true)
}
only caf 'actors/caf/, *_actor.*, messages.*, system.*, <weft/caf.hpp>, its example and bench/calls/' \
  '(_actor|/messages|/system)\.[a-z]+$|^(actors/caf|include/weft/caf|examples/controller)/|^bench/calls/caf_calls[.]cpp' '\bcaf::|<caf/'
only oneDNN chips/cpu/onednn/ '^chips/cpu/onednn/' '\bdnnl::|<oneapi/'
only libcurl data/remote/ '^data/remote/' '<curl/'
only UCX transport/wires/ '^transport/wires/' '<ucp/'
only xbyak chips/cpu/jit/ '^chips/cpu/jit/' '\bXbyak::|<xbyak/'

say 'a header has at most 150 lines' < <(
  sources "${product[@]}" | matching '\.hpp$' | xargs -r awk 'FNR == 151 {print FILENAME ":" FNR}')
say 'a source has at most 400 lines' < <(
  sources "${product[@]}" | matching '\.cpp$' | xargs -r awk 'FNR == 401 {print FILENAME ":" FNR}')

# lines PATTERN: prints the matching lines of the sources and of the build's files.
lines() {
  { sources "${product[@]}" tests && matching '(^|/)CMakeLists\.txt$|\.cmake' <<<"$files"; } |
    LC_ALL=C.UTF-8 xargs -r grep -HnP -- "$1" /dev/null || true
}
say 'a line has at most 100 columns' < <(lines '^.{101}')
say 'a golden file has at most 256 KiB' < <(find tests/golden -size +256k -printf '%p:1\n' 2>/dev/null)
say 'no tabs' < <(lines '\t')
say 'remaining work is in an issue, not in a comment' < <(lines '\b(TODO|FIXME|XXX)\b')
# Tests of a folder are compiled as one source. Namespaces keep their helpers apart.
say 'the namespace of a test ends in the name of its file' < <(
  matching '^tests/.*_test\.cpp$' <<<"$files" | xargs -r awk '
    FNR == 1 { name = FILENAME; gsub(/.*\/|\.cpp$/, "", name) }
    /^namespace weft/ && $2 !~ ("::" name "$") {print FILENAME ":" FNR}')
say 'a test waits for what happens, not for a time' < <(
  lines '\b(sleep|usleep|nanosleep|sleep_for|sleep_until)\s*\(' | matching '^tests/')
exit "$found"
