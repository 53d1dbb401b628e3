#!/usr/bin/env bash
# slurm_hosts.sh HOST_APP: runs HOST_APP by real srun on two nodes of Slurm. The nodes are
# namespaces of this machine, each with a network, processes and a /dev/shm of its own. Needs root,
# slurmctld, slurmd and munged; exits with 77, which ctest shows as skipped, where one of them is
# missing.
set -euo pipefail
app=$1

skip() {
  echo "SKIPPED: $1"
  exit 77
}
((EUID == 0)) || skip "namespaces of networks need root"
for program in slurmctld slurmd munged srun sinfo ip nsenter unshare; do
  PATH=$PATH:/usr/sbin command -v "$program" > /dev/null || skip "this machine has no $program"
done
export PATH=$PATH:/usr/sbin

id=weft$$
run=$(mktemp -d /tmp/weft-slurm-XXXXXX)
chmod 755 "$run"
export SLURM_CONF=$run/slurm.conf
pids=()

clean_up() {
  for pid in "${pids[@]}"; do kill -9 "$pid" 2> /dev/null || true; done
  [[ ! -f $run/slurmctld.pid ]] || kill "$(< "$run/slurmctld.pid")" 2> /dev/null || true
  [[ ! -f $run/munge.pid ]] || kill "$(< "$run/munge.pid")" 2> /dev/null || true
  for name in "$id-switch" "$id-1" "$id-2"; do ip netns del "$name" 2> /dev/null || true; done
  rm -rf "$run"
}
trap clean_up EXIT

ip netns add "$id-switch" 2> "$run/why" || skip "no network namespaces: $(< "$run/why")"
ip -n "$id-switch" link add br0 type bridge
ip -n "$id-switch" link set br0 up
printf '127.0.0.1 localhost\n10.78.0.1 node1\n10.78.0.2 node2\n' > "$run/hosts"
for i in 1 2; do
  ip netns add "$id-$i"
  ip -n "$id-$i" link set lo up
  ip link add eth0 netns "$id-$i" type veth peer name "p$i" netns "$id-switch"
  ip -n "$id-$i" addr add "10.78.0.$i/24" dev eth0
  ip -n "$id-$i" link set eth0 up
  ip -n "$id-switch" link set "p$i" master br0 up
done

# Runs a command on node $1, which keeps its processes and /dev/shm for itself.
on_node() {
  local node=$1
  shift
  exec nsenter --net="/run/netns/$id-$node" unshare --uts --mount --pid --fork --kill-child \
    bash -c 'hostname "node$0"; mount -t proc proc /proc; mount -t tmpfs tmpfs /dev/shm
             mount --bind "$1" /etc/hosts; shift; exec "$@"' "$node" "$run/hosts" "$@"
}

dd if=/dev/urandom of="$run/munge.key" bs=128 count=1 status=none
chmod 400 "$run/munge.key"
munged --force --key-file="$run/munge.key" --socket="$run/munge.socket" \
  --pid-file="$run/munge.pid" --log-file="$run/munge.log" --seed-file="$run/munge.seed"
cat > "$SLURM_CONF" << CONF
ClusterName=weft
SlurmctldHost=node1(10.78.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$run/munge.socket
StateSaveLocation=$run/state
SlurmdSpoolDir=$run/spool.%n
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.%n.pid
SlurmctldLogFile=$run/slurmctld.log
SlurmdLogFile=$run/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
NodeName=node[1-2] NodeAddr=10.78.0.[1-2] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
mkdir -p "$run/state" "$run/spool.node1" "$run/spool.node2"
(on_node 1 slurmctld -D -c -f "$SLURM_CONF") < /dev/null > "$run/slurmctld.out" 2>&1 &
pids+=($!)
disown
for i in 1 2; do
  (on_node "$i" slurmd -D -f "$SLURM_CONF") < /dev/null > "$run/slurmd.$i.out" 2>&1 &
  pids+=($!)
  disown
done

on_login() { nsenter --net="/run/netns/$id-1" unshare --uts bash -c 'hostname node1; exec "$@"' - "$@"; }
# Asks until both nodes are idle. sinfo itself waits for slurmctld.
for ((i = 0; i < 300; ++i)); do
  [[ $(on_login timeout 5 sinfo -h -o '%D %T' 2> /dev/null) == "2 idle" ]] && break
  read -r -t 0.2 <> <(:) || true
done
[[ $(on_login sinfo -h -o '%D %T') == "2 idle" ]] || {
  cat "$run"/slurm*.out "$run"/slurm*.log
  exit 1
}

failures=0
# expect CODE TEXT COMMAND...: the command must end so, and print the text.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  on_login timeout 120 env WEFT_LOG=info "$@" > "$run/output" 2>&1 || got=$?
  if { [[ $code == 0 ]] && ((got != 0)); } || { [[ $code != 0 ]] && ((got == 0)); } ||
    ! grep -qF -- "$text" "$run/output"; then
    echo "FAILED: $*: exit code $got, expected $code and: $text"
    cat "$run/output"
    failures=$((failures + 1))
  fi
}

storage=(--storage "$run/runs" --timeout 60)
expect 0 "host 0 of 2" srun -N2 -n2 "$app" "${storage[@]}" --json "$run/two"
expect 0 "host 1 (node2" srun -N2 --ntasks-per-node=2 "$app" "${storage[@]}" \
  --workers 4 --json "$run/four"
expect 0 "worker 1 (pid" srun -N1 -n1 "$app" "${storage[@]}" --json "$run/one"
expect 1 "host 1 (node2) has found no file" \
  srun -N2 -n2 "$app" --storage /dev/shm/runs --timeout 2
expect 1 "host 0 (node1) has told only 127.0.0.1" \
  srun -N2 -n2 -K0 "$app" "${storage[@]}" --network lo --timeout 5
expect 1 "WEFT_HOSTS = 3, but Slurm has started" \
  env WEFT_HOSTS=3 srun -N2 -n2 "$app" "${storage[@]}"
for result in two four one; do
  grep -q '"counter":40' "$run/$result" || {
    echo "FAILED: the result of $result: $(cat "$run/$result")"
    failures=$((failures + 1))
  }
done
[[ -z $(find "$run/runs" -name 'rendezvous-*') ]] || {
  echo "FAILED: a rendezvous file is left"
  failures=$((failures + 1))
}
exit $((failures > 0))
