#!/usr/bin/env bash
# Runs a command under mpirun across several hosts that are network namespaces of this machine.
#
#   tools/test_hosts.sh [--hosts N] [--ranks-per-host K] [--rate 1gbit] [--delay-us 0] [--map-by slot|node] [--pin]
#     [--launcher RONDO_LAUNCH] -- PROGRAM ARGUMENTS...
#
# --delay-us: how long every frame is under way, one way. Then a process of tools/delayed_links.py carries all frames, which takes
# about 10 us of a core for each.
# --launcher: a rondo-launch that starts the ranks in place of mpirun.
# --pin: host i of N gets the i-th of N parts of the machine's cores; if there are no more cores than hosts, it gets
# core i modulo their number.
# Without --pin, all hosts share all cores.
# Each host has its own network, host name and address (10.77.0.1, .2, ...); each link is shaped at
# both ends by a token bucket. Needs root and iproute2. All that it makes has this process's id in
# its name, and is removed on exit, whatever happens; nothing else is touched.
set -euo pipefail

hosts=2
ranks_per_host=1
rate=1gbit
map_by=slot
pin=
launcher=
delay_us=0
usage() { sed -n '2,15s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
  case "$1" in
    --hosts) hosts=$2; shift 2 ;;
    --ranks-per-host) ranks_per_host=$2; shift 2 ;;
    --rate) rate=$2; shift 2 ;;
    --delay-us) delay_us=$2; shift 2 ;;
    --map-by) map_by=$2; shift 2 ;;
    --pin) pin=yes; shift ;;
    --launcher) launcher=$2; shift 2 ;;
    --help) usage; exit 0 ;;
    --) shift; break ;;
    *) usage >&2; exit 2 ;;
  esac
done
[ $# -gt 0 ] || { usage >&2; exit 2; }
[[ $delay_us =~ ^[0-9]+$ ]] || { echo "test_hosts: --delay-us $delay_us is not a number of microseconds" >&2; exit 2; }

[ "$(id -u)" = 0 ] || { echo "test_hosts: making network namespaces needs root" >&2; exit 77; }
command -v ip >/dev/null || { echo "test_hosts: ip is missing (Debian: iproute2)" >&2; exit 77; }
[ -n "$launcher" ] || command -v mpirun >/dev/null || { echo "test_hosts: mpirun is missing (Debian: openmpi-bin)" >&2; exit 77; }

prefix=rondo$$
made=()
work=$(mktemp -d)
run=
links=
cleanup() {
  trap - EXIT INT TERM
  if [ -n "$run" ]; then
    kill "$run" 2>/dev/null && wait "$run" || true
  fi
  if [ -n "$links" ]; then
    kill "$links" 2>/dev/null && wait "$links" 2>/dev/null || true
  fi
  for space in "${made[@]}"; do
    ip netns delete "$space" 2>/dev/null || true
    rm -rf "/etc/netns/$space"
  done
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Only trying shows whether the machine allows a command: a container may not, even as root.
need() {
  local output
  output=$("$@" 2>&1) && return
  echo "test_hosts: this machine does not allow '$*': $output" >&2
  exit 77
}
make_namespace() {
  need ip netns add "$1"
  made+=("$1")
  need ip -n "$1" link set lo up
  need ip netns exec "$1" unshare -u true
}
shape() { need ip netns exec "$1" tc qdisc add dev "$2" root tbf rate "$rate" burst 256kb latency 50ms; }

make_namespace "$prefix-net"
need ip -n "$prefix-net" link add bridge0 type bridge
need ip -n "$prefix-net" link set bridge0 up
names=""
spaces=()
for ((i = 0; i < hosts; ++i)); do
  make_namespace "$prefix-h$i"
  spaces+=("$prefix-h$i")
  [ "$delay_us" != 0 ] || need ip -n "$prefix-h$i" link add eth0 type veth peer name "port$i" netns "$prefix-net"
done
if [ "$delay_us" != 0 ]; then
  : > "$work/links"
  python3 "$(dirname "$0")/delayed_links.py" "$delay_us" "$prefix-net" "${spaces[@]}" > "$work/links" 2> "$work/links_errors" &
  links=$!
  until grep -q ready "$work/links"; do
    kill -0 "$links" 2>/dev/null || { echo "test_hosts: this machine does not allow delayed links: $(tail -1 "$work/links_errors")" >&2; exit 77; }
    sleep 0.05
  done
fi
for ((i = 0; i < hosts; ++i)); do
  space=$prefix-h$i
  ip -n "$space" address add "10.77.0.$((i + 1))/24" dev eth0
  # As many frames as a wire of some milliseconds holds.
  ip -n "$space" link set eth0 txqueuelen 20000 up
  ip -n "$prefix-net" link set "port$i" txqueuelen 20000 master bridge0 up
  shape "$space" eth0
  shape "$prefix-net" "port$i"
  names="$names,h$i:$ranks_per_host"
  # What ip netns exec shows its command as /etc/hosts.
  mkdir -p "/etc/netns/$space"
  echo "127.0.0.1 localhost" > "/etc/netns/$space/hosts"
  for ((j = 0; j < hosts; ++j)); do echo "10.77.0.$((j + 1)) h$j" >> "/etc/netns/$space/hosts"; done
done

cores=$(nproc)
cores_of() {
  if [ -z "$pin" ]; then
    echo "0-$((cores - 1))"
  elif [ "$hosts" -ge "$cores" ]; then
    echo $(($1 % cores))
  else
    echo "$(($1 * cores / hosts))-$((($1 + 1) * cores / hosts - 1))"
  fi
}
for ((i = 0; i < hosts; ++i)); do cores_of "$i" > "$work/cores-h$i"; done

cat > "$work/agent" <<AGENT
#!/bin/sh
host=\$1
shift
exec taskset -c "\$(cat "$work/cores-\$host")" ip netns exec "$prefix-\$host" unshare -u sh -c 'hostname "\$0"; exec sh -c "\$1"' "\$host" "\$*"
AGENT
chmod +x "$work/agent"

if [ -n "$launcher" ]; then
  # In the background, since bash acts on a signal only between commands.
  RONDO_TEST_HOSTS=$work taskset -c "$(cores_of 0)" ip netns exec "$prefix-h0" unshare -u sh -c 'hostname h0; exec "$@"' sh \
    "$launcher" --hosts "${names#,}" --ssh "$work/agent" "$@" &
  run=$!
  code=0
  wait "$run" || code=$?
  run=
  exit $code
fi

# Open MPI 5 starts processes through PRRTE, which has settings of its own.
case "$(mpirun --version | head -1)" in
  *"Open MPI) 4."*)
    start=(--map-by "$map_by" --mca plm_rsh_agent "$work/agent" --mca oob_tcp_if_include 10.77.0.0/24
      --mca rmaps_base_oversubscribe 1 --mca btl "tcp,vader,self") ;;
  *)
    start=(--map-by "$map_by:oversubscribe" --prtemca plm_ssh_agent "$work/agent" --prtemca prte_if_include 10.77.0.0/24
      --mca btl "tcp,sm,self") ;;
esac

export RONDO_TEST_HOSTS=$work  # a folder that all hosts see
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# In the background, since bash acts on a signal only between commands.
taskset -c "$(cores_of 0)" ip netns exec "$prefix-h0" unshare -u sh -c 'hostname h0; exec "$@"' sh \
  mpirun -n $((hosts * ranks_per_host)) --host "${names#,}" \
  "${start[@]}" --mca pml ob1 --mca btl_tcp_if_include 10.77.0.0/24 --mca mpi_yield_when_idle 1 --bind-to none \
  "$@" 2> >(grep -v 'plm:rsh: setpgid failed' >&2) &
run=$!
code=0
wait "$run" || code=$?
run=
exit $code
