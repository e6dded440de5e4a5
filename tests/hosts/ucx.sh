#!/usr/bin/env bash
# Ranks on several test hosts without MPI: ucx.sh REPOSITORY RONDO_LAUNCH RONDO_TOPO RONDO_PERF WATCHED_GROUPS. Exit
# code 77 (skipped), with the reason, where test hosts cannot be made.
# shellcheck disable=SC2016  # what the ranks run is expanded by them
set -uo pipefail
repository=$1
launch=$2
topo=$3
perf=$4
groups=$5
work=$(mktemp -d)
mkdir "$work/store"
trap 'rm -rf "$work"' EXIT
failed=0

delay_us=0
limit=100
on_hosts() { # HOSTS RANKS-PER-HOST COMMAND...
  local hosts=$1 ranks=$2
  shift 2
  timeout "$limit" "$repository/tools/test_hosts.sh" --hosts "$hosts" --ranks-per-host "$ranks" --delay-us "$delay_us" --launcher "$launch" -- "$@" >"$work/output" 2>&1
  code=$?
  if [ $code = 77 ] && [ "$delay_us" = 0 ]; then
    echo "skipped: $(cat "$work/output")"
    exit 77
  fi
}
check() { # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then
    echo "ok: $what"
  else
    echo "FAILED: $what (exit code $code)"
    cat "$work/output"
    failed=1
  fi
}

on_hosts 2 2 "$topo"
check "rondo-topo names the carrier" grep -q "edge .* ucx     ring     (hosts h[01] and h[01])" "$work/output"
for layout in "2 1" "2 2" "3 1"; do
  read -r hosts ranks <<<"$layout"
  for op in all_reduce reduce_scatter all_gather broadcast reduce all_to_all sendrecv gather scatter send; do
    on_hosts "$hosts" "$ranks" "$perf" --op "$op" --algo auto -b 4 -e 1MiB -f 64 -n 3 -w 1
    check "$op on $hosts hosts with $ranks ranks each" [ $code = 0 ]
  done
done

# By IPv6 alone.
on_hosts 3 1 sh -c '
  ip -6 addr add "fd00::$((RONDO_RANK + 1))/64" dev eth0 nodad
  ip -4 addr flush dev eth0
  export RONDO_STORE="tcp://[fd00::1]:29500" RONDO_INTERFACE=eth0
  exec "$0" --algo auto -b 4 -e 1MiB -f 64 -n 3 -w 1' "$perf"
check "ranks join and make calls by IPv6" [ $code = 0 ]

# Two hosts reach rank 0, but not each other.
on_hosts 3 1 sh -c '
  export RONDO_TIMEOUT=4
  trap "" TERM
  case "$RONDO_RANK" in 1) ip route add blackhole 10.77.0.3 ;; 2) ip route add blackhole 10.77.0.2 ;; esac
  exec "$0" 2>&1' "$topo"
check "hosts that do not reach each other are an error" [ $code != 0 ]
for rank in 0 1 2; do
  check "that names both ranks on rank $rank" grep -q "^\[$rank\] .*rank [12] cannot exchange messages with rank [12]" "$work/output"
  check "and the variable that chooses the network" grep -q "^\[$rank\] .*RONDO_INTERFACE" "$work/output"
done

# Two that are no neighbours in the ring.
on_hosts 4 1 sh -c '
  export RONDO_TIMEOUT=4
  trap "" TERM
  case "$RONDO_RANK" in 1) ip route add blackhole 10.77.0.4 ;; 3) ip route add blackhole 10.77.0.2 ;; esac
  exec "$0" 2>&1' "$topo"
check "hosts that do not reach each other and are no neighbours are an error" [ $code != 0 ]
for rank in 0 1 2 3; do
  check "which names the variable that chooses the network on rank $rank" grep -q "^\[$rank\] .*RONDO_INTERFACE" "$work/output"
  check "that names both ranks on rank $rank" grep -qE "^\[$rank\] .*rank (1 .*rank(s)? 3|3 .*rank(s)? 1)" "$work/output"
done
check "and no rank crashes" bash -c '! grep -qE "ended by signal|Aborted|terminate" "$1"' bash "$work/output"

# The same two hosts, where what one sends to the other is lost on the way: nothing tells that.
start=$SECONDS
on_hosts 4 1 sh -c '
  export RONDO_TIMEOUT=4
  trap "" TERM
  case "$RONDO_RANK" in 1) peer=10.77.0.4 ;; 3) peer=10.77.0.2 ;; *) peer= ;; esac
  [ -z "$peer" ] || ip neighbour add "$peer" lladdr 02:00:00:00:00:09 dev eth0 nud permanent
  exec "$0" 2>&1' "$topo"
check "hosts between which packets are lost are an error" [ $code != 0 ]
check "soon" [ $((SECONDS - start)) -lt 40 ]
for rank in 0 1 2 3; do
  check "that names both ranks on rank $rank" grep -qE "^\[$rank\] .*rank (1 .*rank(s)? 3|3 .*rank(s)? 1)" "$work/output"
done
check "and no rank crashes" bash -c '! grep -qE "ended by signal|Aborted|terminate" "$1"' bash "$work/output"

# A bridge for containers, of the same name and address on every host, which leads nowhere.
on_hosts 3 1 sh -c '
  ip link add docker0 type dummy
  ip address add 172.17.0.1/16 dev docker0
  ip link set docker0 up
  exec "$0" --algo auto -b 4 -e 1MiB -f 64 -n 3 -w 1' "$perf"
check "an interface that leads nowhere is not used" [ $code = 0 ]

on_hosts 2 1 sh -c '
  trap "" TERM
  [ "$RONDO_RANK" = 0 ] || export RONDO_INTERFACE=eth7
  exec "$0" 2>&1' "$topo"
for rank in 0 1; do
  check "an interface that rank 1 lacks is named on rank $rank" grep -q "^\[$rank\] .*rank 1: the network interface .eth7." "$work/output"
done

# In a shared folder, where rank 0 says that it has an address, too, from which no answer comes.
on_hosts 2 1 sh -c '
  export RONDO_STORE="file://$1/store"
  if [ "$RONDO_RANK" = 0 ]; then
    ip address add 10.99.0.1/32 dev lo
  else
    ip route add 10.99.0.1 dev eth0
    ip neighbour add 10.99.0.1 lladdr 02:00:00:00:00:09 dev eth0 nud permanent
  fi
  env -u RONDO_RANK -u RONDO_SIZE RANK="$RONDO_RANK" WORLD_SIZE="$RONDO_SIZE" MASTER_ADDR=h0 MASTER_PORT=29500 "$0"' "$topo" "$work"
check "an address of rank 0 that does not answer keeps nobody from joining" [ $code = 0 ]

# Rank 1 is killed when it has received something in its calls. The others ignore that they are asked to end.
on_hosts 4 1 sh -c '
  trap "" TERM
  if [ "$RONDO_RANK" != 1 ]; then exec "$0" --algo auto -b 4MiB -e 4MiB -n 1000 -w 1 2>&1; fi
  "$0" --algo auto -b 4MiB -e 4MiB -n 1000 -w 1 &
  id=$!
  until [ "$(cat /sys/class/net/eth0/statistics/rx_bytes)" -gt 30000000 ]; do :; done
  kill -KILL $id
  wait $id' "$perf"
check "a killed rank is an error" [ $code = 137 ]
for rank in 0 2 3; do check "that names it on rank $rank" grep -q "^\[$rank\] .*rank 1 (process [0-9]*) ended during" "$work/output"; done

# The same, where a child of the killed process lives on, and has its sockets.
start=$SECONDS
on_hosts 3 1 sh -c '
  trap "" TERM
  if [ "$RONDO_RANK" != 1 ]; then exec "$0" orphan 2>&1; fi
  exec "$0" orphan' "$groups"
check "a killed rank whose child lives on is an error" [ $code = 137 ]
check "soon" [ $((SECONDS - start)) -lt 60 ]
for rank in 0 2; do check "that names it on rank $rank" grep -q "^\[$rank\] .*rank 1 (process [0-9]*) ended during" "$work/output"; done

# The network of rank 2's host goes down in the middle of its calls. Nothing tells the others.
on_hosts 4 1 sh -c '
  trap "" TERM
  if [ "$RONDO_RANK" != 2 ]; then exec "$0" --algo auto -b 4MiB -e 4MiB -n 1000 -w 1 2>&1; fi
  "$0" --algo auto -b 4MiB -e 4MiB -n 1000 -w 1 2>&1 &
  id=$!
  until [ "$(cat /sys/class/net/eth0/statistics/rx_bytes)" -gt 30000000 ]; do :; done
  ip link set eth0 down
  wait $id' "$perf"
check "a host that vanishes is an error" [ $code != 0 ]
for rank in 0 1 3; do
  check "that names it on rank $rank" grep -q "^\[$rank\] .*the host of rank 2 (h2) does not answer" "$work/output"
done

# The same, where rank 0 is in no call and the others have a communicator of their own.
on_hosts 4 1 sh -c '
  if [ "$RONDO_RANK" = 0 ]; then exec "$0" vanish; fi
  trap "" TERM
  if [ "$RONDO_RANK" != 2 ]; then exec "$0" vanish 2>&1; fi
  "$0" vanish 2>&1 &
  id=$!
  until [ "$(cat /sys/class/net/eth0/statistics/rx_bytes)" -gt 30000000 ]; do :; done
  ip link set eth0 down
  wait $id' "$groups"
check "a host that vanishes is an error in a group without rank 0" [ $code != 0 ]
for rank in 1 3; do
  check "that names it on rank $rank" grep -q "^\[$rank\] .*the host of rank 1 (h2) does not answer" "$work/output"
done

on_hosts 2 2 "$groups" many
check "communicators of the same processes share the connections by which hosts are watched" [ $code = 0 ]
# More ranks than rank 0 has heard out at once, where each thing that one says is under way for 20 ms.
delay_us=20000
limit=300
RONDO_TIMEOUT=180 on_hosts 2 70 "$topo"
if [ $code = 77 ]; then
  echo "not run: 140 ranks over a link of 20 ms: $(cat "$work/output")"
else
  check "140 ranks join over a link of 20 ms" [ $code = 0 ]
fi
exit $failed
