#!/usr/bin/env bash
# Runs README's two commands on a fresh system of another Debian release, in a folder that
# debootstrap fills:
#
#   WEFT_DEBIAN=trixie [WEFT_DEBIAN_FOLDER=FOLDER] tests/package/debian.sh DIGITS [CTEST ARGS...]
#
# DIGITS is this system's build of the example: the losses of both must agree. Needs root, the package
# debootstrap, 5 GB and an hour. An existing folder is used again, with the builds in it. Without
# WEFT_DEBIAN the script says that it is skipped, and exits with 77.
set -euo pipefail

readonly root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly release=${WEFT_DEBIAN:-}
readonly folder=${WEFT_DEBIAN_FOLDER:-$root/build/debian/$release}
readonly digits=$(realpath -- "${1:?usage: WEFT_DEBIAN=trixie tests/package/debian.sh DIGITS [CTEST ARGS...]}")
shift

if [[ ! $release ]]; then
  echo "skipped: WEFT_DEBIAN=trixie, as root, tries README's commands on Debian trixie"
  exit 77
fi

die() {
  printf 'debian.sh: %s\n' "$*" >&2
  exit 1
}

((EUID == 0)) || die "only root can fill and enter $folder; run this as root, or unset WEFT_DEBIAN"
command -v debootstrap >/dev/null || die "there is no debootstrap; apt-get install debootstrap"

# The mounts below exist only in this process's mount namespace, and end with it.
if [[ ! ${WEFT_DEBIAN_MOUNTS:-} ]]; then
  WEFT_DEBIAN_MOUNTS=own exec unshare --mount --propagation private "$0" "$digits" "$@"
fi

# mirror: the mirror from which this system gets its own packages
mirror() {
  apt-get indextargets --format '$(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" { print $2; exit }'
}

if [[ ! -x $folder/usr/bin/apt-get ]]; then
  mkdir -p "$folder"
  debootstrap --variant=minbase "$release" "$folder" "$(mirror)"
fi
for place in proc sys dev; do mount --rbind "/$place" "$folder/$place"; done

# Copies the files that git tracks, with uncommitted changes, over an earlier copy. The copies keep
# the files' times, so that little is built again.
mkdir -p "$folder/root/weft"
find "$folder/root/weft" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
(cd "$root" && git ls-files -z --cached --others --exclude-standard --deduplicate |
  while IFS= read -rd '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
  tar --create --null --files-from=- | tar --extract --directory "$folder/root/weft")

# inside COMMAND...: runs COMMAND in the folder; of this environment it gets only the number of
# compilers
inside() {
  chroot "$folder" /usr/bin/env -i -C /root/weft HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 ${CMAKE_BUILD_PARALLEL_LEVEL:+"CMAKE_BUILD_PARALLEL_LEVEL=$CMAKE_BUILD_PARALLEL_LEVEL"} \
    "$@"
}

# losses FILE: prints the losses of the steps, one per line
losses() { tr -d ' \n' <"$1" | sed 's/.*"loss_history":\[\([^]]*\)\].*/\1/' | tr , '\n'; }

readonly here=$(mktemp) there=$folder/tmp/losses.json
trap 'rm -f "$here"' EXIT
(cd "$folder/tmp" && "$digits" --json "$here")
inside ./tools/dev run -- --json /tmp/losses.json
# Another version of oneDNN sums in another order, so last bits differ, and training enlarges the
# difference. The first losses show whether the computation is the same, the last losses whether the
# model learns equally well.
paste <(losses "$here") <(losses "$there") | awk '
  function abs(x) { return x < 0 ? -x : x }
  NF != 2 { print "step " NR ": one of them has no loss"; exit failed = 1 }
  NR <= 20 && abs($1 - $2) > 1e-5 * $1 { print "step " NR ": " $1 " here, " $2 " there"; failed = 1 }
  { a = $1; b = $2 }
  END {
    print NR " steps; the last loss is " a " here, " b " there"
    if (NR < 20 || abs(a - b) > 0.02 * a) failed = 1
    exit failed
  }' || die "the losses on $release are others than here"

inside ./tools/dev test "$@"
