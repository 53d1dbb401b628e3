#!/usr/bin/env bash
# floors.sh ROOT: checks the source tree ROOT against the table of floors and the limits of style:
# what each folder includes, where CAF and oneDNN may stand, how long files and lines are.
# Prints "FILE:LINE: what is wrong" and fails, or prints nothing.
set -euo pipefail

cd "$1"

readonly standard='<[a-z_0-9]+>'
readonly posix='<([a-z_0-9]+/)?[a-z_0-9]+\.h>'
readonly threads='<(thread|mutex|shared_mutex|condition_variable|semaphore|latch|barrier|future)>'
readonly world='<(chrono|ctime|filesystem|fstream|iostream|random)>'

found=0
# say WHAT: every line of stdin is a place ("FILE:LINE:..."), and there should be none.
say() {
  local place
  while IFS= read -r place; do
    printf '%s: %s\n' "$(cut -d: -f1,2 <<<"$place")" "$1"
    found=1
  done
}

folders=()
product=()  # all but the tests
for folder in weft.hpp schema spmd transport actors tools examples bench tests; do
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

# floor FOLDER ALLOWED...: every include of the folder matches one of the patterns.
floor() {
  [[ -d $1 ]] || return 0
  local folder=$1 allowed
  shift
  allowed=$(IFS='|'; echo "$*")
  say "not to be included on the floor $folder/" < <(includes "$folder" | but ":($allowed)\$")
}

floor spmd "$standard" '<fmt/.*>' '<weft/spmd/.*>'
floor transport "$standard" "$posix" '<(fmt|flatbuffers|boost/interprocess)/.*>' \
  '<weft_schema/.*>' '<weft/(spmd|transport)/.*>'
floor actors "$standard" "$posix" '<(fmt|spdlog|nlohmann|caf|oneapi|openssl)/.*>' \
  '<weft/(spmd|transport|actors)/.*>'

say 'spmd/ holds values: no thread, clock, file or chance' < <(
  includes "${product[@]}" | matching "^spmd/.*:($threads|$world)\$")
say 'includes are written <weft/...>' < <(includes "${folders[@]}" | matching ':"')
say 'caf stands only in *_actor.*, messages.* and system.*' < <(
  sources "${product[@]}" | but '(_actor|/messages|/system)\.[a-z]+$' |
    xargs -r grep -HnP '\bcaf::|<caf/' /dev/null || true)
say 'oneDNN stands only in actors/device/kernels/' < <(
  sources "${product[@]}" | but '^actors/device/kernels/' |
    xargs -r grep -HnP '\bdnnl::|<oneapi/' /dev/null || true)

say 'a header has at most 150 lines' < <(
  sources "${product[@]}" | matching '\.hpp$' | xargs -r awk 'FNR == 151 {print FILENAME ":" FNR}')
say 'a source has at most 400 lines' < <(
  sources "${product[@]}" | matching '\.cpp$' | xargs -r awk 'FNR == 401 {print FILENAME ":" FNR}')

# lines PATTERN: lines that match, of the sources and of the build's files.
lines() {
  {
    sources "${folders[@]}"
    find . -path ./build -prune -o \( -name CMakeLists.txt -o -name '*.cmake*' \) -print | cut -c3-
  } | LC_ALL=C.UTF-8 xargs -r grep -HnP -- "$1" /dev/null || true
}
say 'a line has at most 100 columns' < <(lines '^.{101}')
say 'no tabs' < <(lines '\t')
say 'what is left to do is done, or is an issue' < <(lines '\b(TODO|FIXME|XXX)\b')
say 'a test waits for what happens, not for a time' < <(
  lines '\b(sleep|usleep|nanosleep|sleep_for|sleep_until)\s*\(' | matching '^tests/')

exit "$found"
