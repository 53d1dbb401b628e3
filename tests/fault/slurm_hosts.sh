#!/usr/bin/env bash
# slurm_hosts.sh HOST_APP: runs HOST_APP by real srun on nodes of Slurm. The three nodes are
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
  for name in "$id-switch" "$id-1" "$id-2" "$id-3"; do ip netns del "$name" 2> /dev/null || true; done
  rm -rf "$run"
}
trap clean_up EXIT

ip netns add "$id-switch" 2> "$run/why" || skip "no network namespaces: $(< "$run/why")"
ip -n "$id-switch" link add br0 type bridge
ip -n "$id-switch" link set br0 up
printf '127.0.0.1 localhost\n10.78.0.1 node1\n10.78.0.2 node2\n10.78.0.3 node3\n' > "$run/hosts"
for i in 1 2 3; do
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
NodeName=node[1-3] NodeAddr=10.78.0.[1-3] CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
mkdir -p "$run/state" "$run"/spool.node{1,2,3}
(on_node 1 slurmctld -D -c -f "$SLURM_CONF") < /dev/null > "$run/slurmctld.out" 2>&1 &
pids+=($!)
disown
for i in 1 2 3; do
  (on_node "$i" slurmd -D -f "$SLURM_CONF") < /dev/null > "$run/slurmd.$i.out" 2>&1 &
  pids+=($!)
  last_node=$!
  disown
done

on_login() { nsenter --net="/run/netns/$id-1" unshare --uts bash -c 'hostname node1; exec "$@"' - "$@"; }
# Asks until all nodes are idle. sinfo itself waits for slurmctld.
for ((i = 0; i < 300; ++i)); do
  [[ $(on_login timeout 5 sinfo -h -o '%D %T' 2> /dev/null) == "3 idle" ]] && break
  read -r -t 0.2 <> <(:) || true
done
[[ $(on_login sinfo -h -o '%D %T') == "3 idle" ]] || {
  cat "$run"/slurm*.out "$run"/slurm*.log
  exit 1
}

failures=0
# expect CODE TEXT COMMAND...: the command must end so, and print the text.
expect() {
  local code=$1 text=$2 got=0
  shift 2
  on_login timeout -k 10 120 env WEFT_LOG=info "$@" > "$run/output" 2>&1 || got=$?
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

# A job in an allocation of three nodes runs on two of them. All that runs on node 3 is killed, and
# the job continues on node 2, which the allocation has to spare.
cat > "$run/batch" << 'BATCH'
export WEFT_JOB=$SLURM_JOB_ID
job=("$APP" --storage "$RUN/runs" --timeout 60 --steps 400 --whole --waits 1 --once "$RUN/gate"
  --max-failures 3 --host-timeout 3 --json "$RUN/spare")
srun --no-kill --kill-on-bad-exit=0 -N2 -w node1,node3 "${job[@]}" > "$RUN/srun.1" 2>&1 &
# Asks this until it is true, or until the first step of Slurm has ended.
until_true() { until "$@" || ! kill -0 %1; do read -r -t 0.1 <> <(:) || true; done; }
until_true test -e "$RUN/gate.waits"
kill -9 "$LAST_NODE"
until_true grep -q 'host 1 (node3.* is lost' "$RUN/srun.1"
touch "$RUN/gate"
srun --overlap -N1 -n1 -w node2 env WEFT_HOSTS=2 WEFT_HOST_INDEX=1 "${job[@]}" \
  > "$RUN/srun.2" 2>&1
until_true test -s "$RUN/spare"
cat "$RUN"/srun.[12]
kill %1
BATCH
expect 0 "gets the state of step" env APP="$app" RUN="$run" LAST_NODE="$last_node" \
  salloc --no-kill -N3 bash "$run/batch"
for result in two four one spare; do
  grep -qE '"counter":400?\.' "$run/$result" || {
    echo "FAILED: the result of $result: $(cat "$run/$result")"
    failures=$((failures + 1))
  }
done
[[ -z $(find "$run/runs" -name 'rendezvous-*') ]] || {
  echo "FAILED: a rendezvous file is left"
  failures=$((failures + 1))
}
exit $((failures > 0))
