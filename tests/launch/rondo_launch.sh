#!/usr/bin/env bash
# rondo-launch: rondo_launch.sh RONDO_LAUNCH RONDO_TOPO
# shellcheck disable=SC2016  # what the ranks run is expanded by them
set -uo pipefail
launch=$1
topo=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then
    echo "ok: $what"
  else
    echo "FAILED: $what"
    failed=1
  fi
}
wait_for() { while [ ! -e "$1" ]; do :; done; }
is_gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
# A process that is killed by the system, not by a signal that this script waits for, is gone soon.
goes() { until is_gone "$1"; do :; done; }

output=$("$launch" -n 3 sh -c 'echo "$RONDO_RANK of $RONDO_SIZE, $RONDO_LOCAL_RANK of $RONDO_LOCAL_SIZE"; printf end >&2' 2>&1 | sort)
check "each line has its rank, also one without an end" [ "$output" = "[0] 0 of 3, 0 of 3
[0] end
[1] 1 of 3, 1 of 3
[1] end
[2] 2 of 3, 2 of 3
[2] end" ]
# Python writes to a pipe in blocks, as C and C++ do, and to a terminal line by line.
"$launch" -n 1 python3 -c 'print("early")
import os, sys
while not os.path.exists(sys.argv[1]): pass' "$work/seen" >"$work/lines" &
until grep -q "^\[0\] early$" "$work/lines"; do :; done
touch "$work/seen"
wait $!
check "a line comes when it is written" [ $? = 0 ]
output=$("$launch" -n 1 python3 -c 'print("before"); import os; os.kill(os.getpid(), 9)' 2>/dev/null)
check "what a rank wrote before it was killed is shown" [ "$output" = "[0] before" ]
output=$("$launch" -n 1 sh -c 'printf "a\tb\r\nc\n"' | od -c)
check "no character is changed" [ "$output" = "$(printf '[0] a\tb\r\n[0] c\n' | od -c)" ]
output=$("$launch" -n 2 --grace 1000 sh -c '
  if [ $RONDO_RANK = 1 ]; then echo $$ > "$0/one.new"; mv "$0/one.new" "$0/one"; exit 7; fi
  while [ ! -e "$0/one" ]; do :; done
  while kill -0 $(cat "$0/one") 2>/dev/null; do :; done
  echo "rank 1 is gone" >&2; exit 1' "$work" 2>&1)
check "the other ranks may say what they saw" grep -q "^\[0\] rank 1 is gone$" <<<"$output"
RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 "$launch" -n 2 "$topo" >"$work/topology" 2>&1
check "variables of a launcher above it contradict nothing" [ $? = 0 ]
for word in --foo -c --n=2; do
  "$launch" $word -n 2 echo hello >"$work/output" 2>&1
  check "$word, which is no option, is not taken for the program" [ $? != 0 ]
  check "and is named" grep -q -e "^$word: is no option of rondo-launch" "$work/output"
done
for words in "-np=2" "-np2" "--np 2" "--ranks=2" "-n2"; do
  # shellcheck disable=SC2086
  check "$words is -n 2" [ "$("$launch" $words sh -c 'echo $RONDO_SIZE' | sort -u | wc -l)" = 2 ]
done
output=$("$launch" -np 2 sh -c 'echo $RONDO_SIZE -np' | sort)
check "-np is -n" [ "$output" = "[0] 2 -np
[1] 2 -np" ]
check "a rank alone is bound to all cores" [ "$("$launch" -n 1 --bind --no-prefix nproc)" = "$(nproc)" ]
# All ranks together have all hardware threads. Where each core has one, each rank has another.
"$launch" -n "$(nproc)" --bind --no-prefix python3 -c 'import os; print(*os.sched_getaffinity(0))' >"$work/bound"
all=$(tr ' ' '\n' <"$work/bound" | sort -un | wc -l)
check "bound ranks share the cores" [ "$all" = "$(nproc)" ]
if ! grep -q '[,-]' /sys/devices/system/cpu/cpu0/topology/thread_siblings_list; then
  check "each has its own" [ "$(sort -u "$work/bound" | wc -l)" = "$(nproc)" ]
fi
output=$("$launch" -n 1 --no-prefix -- echo plain -n 2)
check "what follows the program belongs to it" [ "$output" = "plain -n 2" ]

# Rank 1 fails when rank 0 is ready; rank 0 ignores being asked to end, and so does what it has started.
"$launch" -n 2 --grace 0.2 sh -c '
  if [ $RONDO_RANK = 1 ]; then while [ ! -e "$0/ready" ]; do :; done; exit 7; fi
  trap "" TERM
  sleep 1000 & echo $! > "$0/child"; echo $$ > "$0/ready.new"; mv "$0/ready.new" "$0/ready"
  while :; do wait; done' "$work" 2>"$work/errors"
check "the exit code is that of the first that failed" [ $? = 7 ]
check "who failed is named" grep -q "rank 1 ended with exit code 7" "$work/errors"
check "a rank that does not end is killed" is_gone "$(cat "$work/ready")"
check "so is what it has started" is_gone "$(cat "$work/child")"

"$launch" -n 2 sh -c 'kill -SEGV $$' 2>"$work/errors"
check "a signal that ends a rank is 128 and its number" [ $? = 139 ]
check "the signal is named" grep -q "was ended by signal 11" "$work/errors"
"$launch" -n 1 "$work/nothing" 2>"$work/errors"
check "a program that is not there is 127" [ $? = 127 ]
check "and is named" grep -q "cannot start $work/nothing: No such file" "$work/errors"

# A rank that ends well and leaves a process of another session behind.
"$launch" -n 1 sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! > "$0/left"' "$work"
check "a rank that leaves a process behind ends well" [ $? = 0 ]
check "nothing is left behind" is_gone "$(cat "$work/left")"

# Signals reach every rank.
rm -f "$work"/rank-*
"$launch" -n 2 sh -c 'trap "exit 0" USR1; touch "$0/rank-$RONDO_RANK"; while :; do :; done' "$work" &
started=$!
wait_for "$work/rank-0"
wait_for "$work/rank-1"
kill -USR1 $started
wait $started
check "both ranks got the signal, and ended well" [ $? = 0 ]

# A rank that ignores TERM is killed by the second one.
rm -f "$work"/rank-*
"$launch" -n 1 sh -c 'trap "touch \"$0/first\"" TERM; touch "$0/rank-0"; while :; do :; done' "$work" 2>/dev/null &
started=$!
wait_for "$work/rank-0"
kill -TERM $started
wait_for "$work/first"
kill -TERM $started
wait $started
check "a second signal kills" [ $? = 137 ]

# rondo-launch itself is killed.
rm -f "$work"/rank-*
"$launch" -n 1 sh -c 'echo $$ > "$0/id"; touch "$0/rank-0"; while :; do :; done' "$work" &
started=$!
wait_for "$work/rank-0"
kill -KILL $started
wait $started 2>/dev/null
goes "$(cat "$work/id")"
check "ranks do not outlive rondo-launch" true

# So do neither what ranks have started nor the folder of their socket, whichever of its two processes is killed.
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
for victim in guard supervisor; do
  rm -f "$work"/rank-* "$work/child" "$work/parent"
  "$launch" -n 1 sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$0/child"; echo $PPID >"$0/parent"; touch "$0/rank-0"; while :; do :; done' "$work" 2>/dev/null &
  started=$!
  wait_for "$work/rank-0"
  if [ $victim = guard ]; then kill -KILL $started; else kill -KILL "$(cat "$work/parent")"; fi
  wait $started 2>/dev/null
  check "rondo-launch is ended when its $victim is killed" [ $? = 137 ]
  goes "$(cat "$work/child")"
  until [ -z "$(ls "$TMPDIR")" ]; do :; done
  check "nothing is left when its $victim is killed" true
done
unset TMPDIR

# Whoever signals both of its processes, as killall does, ends the ranks as a single signal does.
rm -f "$work"/rank-* "$work/parent"
"$launch" -n 1 sh -c 'trap "kill \$! 2>/dev/null; for i in 1 2 3 4 5; do sh -c :; done; exit 4" TERM; echo $PPID >"$0/parent"; sleep 1000 & touch "$0/rank-0"; wait' "$work" 2>/dev/null &
started=$!
wait_for "$work/rank-0"
kill -TERM $started "$(cat "$work/parent")"
wait $started
check "a signal to both processes is one for the ranks" [ $? = 4 ]

# Signals that are ignored when it starts, by nohup for instance, are no wish to end.
rm -f "$work"/rank-* "$work/first"
(trap '' HUP; exec "$launch" -n 1 sh -c 'trap "touch \"$0/first\"; exit 4" TERM; touch "$0/rank-0"; while :; do :; done' "$work") 2>/dev/null &
started=$!
wait_for "$work/rank-0"
kill -HUP $started
kill -TERM $started
wait $started
check "an ignored signal is none" [ $? = 4 ]

# `pkill -9 rondo-launch` finds one of its two processes by that name; the other one ends what there is.
rm -f "$work"/rank-* "$work/child" "$work/parent"
export TMPDIR=$work/tmp
"$launch" -n 1 sh -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $! >"$0/child"; echo $PPID >"$0/parent"; touch "$0/rank-0"; while :; do :; done' "$work" 2>/dev/null &
started=$!
wait_for "$work/rank-0"
for process in $started "$(cat "$work/parent")"; do
  if [ "$(cat "/proc/$process/comm")" = rondo-launch ]; then kill -KILL "$process"; fi
done
wait $started 2>/dev/null
goes "$(cat "$work/child")"
until [ -z "$(ls "$TMPDIR")" ]; do :; done
check "nothing is left after pkill -9" true
unset TMPDIR

# A terminal's suspend key stops the ranks, too, and they go on with rondo-launch.
rm -f "$work"/rank-* "$work/id"
state_of() { sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null; }
"$launch" -n 1 sh -c 'echo $$ >"$0/id"; touch "$0/rank-0"; until [ -e "$0/go" ]; do :; done; exit 3' "$work" 2>/dev/null &
started=$!
wait_for "$work/rank-0"
kill -TSTP $started
until [ "$(state_of "$(cat "$work/id")")" = T ] && [ "$(state_of $started)" = T ]; do :; done
touch "$work/go"
kill -CONT $started
wait $started
check "a suspended job goes on" [ $? = 3 ]

# A line that never ends is broken, and not kept.
output=$("$launch" -n 1 sh -c 'head -c 300000 /dev/zero | tr "\0" "."' | wc -c)
check "a line without an end is shown in pieces" [ "$output" -gt 300010 ]

head -c 300000 /dev/urandom >"$work/bytes"
check "without a prefix no byte is changed" cmp -s "$work/bytes" <("$launch" -n 1 --no-prefix cat "$work/bytes")

# A reader that goes away ends the ranks, as it ends any program that writes to it.
timeout 60 "$launch" -n 2 yes 2>/dev/null | head -1 >"$work/output"
check "ranks whose reader has gone are ended" [ "${PIPESTATUS[0]}" = 141 ]
timeout 60 "$launch" -n 2 sh -c 'yes >&2' 2>&1 | head -1 >"$work/output"
check "also where that is the reader of their errors" [ "${PIPESTATUS[0]}" = 141 ]
"$launch" -n 1 echo text >/dev/full 2>"$work/errors"
check "a full disk ends no rank" [ $? = 0 ]
check "but is told" grep -q "some of what ranks wrote is lost: No space left on device" "$work/errors"
# A stream that its reader has made non-blocking: the reader comes late.
python3 - "$launch" >"$work/output" <<'READER'
import os, subprocess, sys
read, write = os.pipe()
os.set_blocking(write, False)
job = subprocess.Popen([sys.argv[1], "-n", "1", "--no-prefix", "head", "-c", "1000000", "/dev/zero"], stdout=write)
os.close(write)
got = 0
while data := os.read(read, 4096): got += len(data)
print(job.wait(), got)
READER
check "a stream that is not waited for loses nothing" [ "$(cat "$work/output")" = "0 1000000" ]
# One that does not read.
mkfifo "$work/unread"
state_of_rank() { state_of "$(cat "$work/id")"; }
for signal in TERM KILL; do
  rm -f "$work/id"
  sleep 1000 <>"$work/unread" &
  reader=$!
  "$launch" -n 1 --grace 1 sh -c 'echo $$ >"$0/id.new"; mv "$0/id.new" "$0/id"; exec yes' "$work" >"$work/unread" 2>/dev/null &
  started=$!
  wait_for "$work/id"
  until [ "$(state_of_rank)" = S ] && [ "$(tr '\0' ' ' <"/proc/$(cat "$work/id")/cmdline")" = "yes " ]; do :; done
  kill -$signal $started
  wait $started 2>/dev/null
  check "rondo-launch whose output is not read hears SIG$signal" [ $? -gt 128 ]
  goes "$(cat "$work/id")"
  check "and no rank is left" true
  kill $reader
  wait $reader 2>/dev/null
done
for tool in "$launch" "$topo"; do
  name=$work/$(printf '%0200d' 0)
  mkdir -p "$name"
  if [ "$tool" = "$launch" ]; then TMPDIR=$name "$launch" -n 2 "$topo" >"$work/output" 2>&1; else TMPDIR=$name "$topo" --processes 2 >"$work/output" 2>&1; fi
  check "ranks meet where the path of temporary files is long: ${tool##*/}" [ $? = 0 ]
done

# Ranks of --processes end with the process that has started them, and so does their folder.
export TMPDIR=$work/tmp
"$topo" --processes 2 >/dev/null
check "--processes leaves no folder" [ -z "$(ls "$TMPDIR")" ]
"$topo" --processes 32 >/dev/null 2>&1 &  # which takes a while
started=$!
children=
until [ "$(wc -w <<<"$children")" = 33 ] || ! kill -0 $started 2>/dev/null; do children=$(cat /proc/$started/task/*/children 2>/dev/null); done
kill -KILL $started
wait $started 2>/dev/null
check "a parent with all its ranks was killed" [ "$(wc -w <<<"$children")" = 33 ]
for child in $children; do goes "$child"; done
until [ -z "$(ls "$TMPDIR")" ]; do sleep 0.01; done
check "neither ranks nor their folder are left" [ -z "$(ls "$TMPDIR")" ]
unset TMPDIR

# Other hosts, by a command that takes the place of ssh: it notes what it was asked for, and does that here.
cat >"$work/ssh" <<'AGENT'
#!/bin/sh
echo "$$ $*" >>"$(dirname "$0")/asked"
host=$1
shift
HOST=$host exec sh -c "$*"
AGENT
chmod +x "$work/ssh"
export RONDO_FORWARDED=yes OTHER_VARIABLE=too
output=$("$launch" --hosts a:2,b:1 --ssh "$work/ssh" --env OTHER_VARIABLE sh -c 'echo "$HOST $RONDO_RANK/$RONDO_SIZE $RONDO_LOCAL_RANK/$RONDO_LOCAL_SIZE $RONDO_FORWARDED $OTHER_VARIABLE ${RONDO_STORE%:*} ${#RONDO_SECRET}"' | sort)
check "ranks of hosts, in their order" [ "$output" = "[0] a 0/3 0/2 yes too tcp://a 32
[1] a 1/3 1/2 yes too tcp://a 32
[2] b 2/3 0/1 yes too tcp://a 32" ]
output=$("$launch" --torch --hosts a:2,b:1 --ssh "$work/ssh" sh -c 'echo "$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR $((MASTER_PORT > 0))"' | sort)
check "--torch: what torchrun sets" [ "$output" = "[0] 0/3 0/2 a 1
[1] 1/3 1/2 a 1
[2] 2/3 0/1 a 1" ]
check "without it, nothing of that" [ -z "$("$launch" --no-prefix -n 1 sh -c 'echo $WORLD_SIZE$MASTER_PORT')" ]
check "the command of ssh tells neither secret nor program" [ "$(grep -c -- "--serve$" "$work/asked")" = 4 ]
output=$("$launch" -n 3 --hosts a:2,b:4 --ssh "$work/ssh" sh -c 'echo "$HOST"' | sort | tr '\n' ' ')
check "the first so many ranks of the hosts" [ "$output" = "[0] a [1] a [2] b " ]
"$launch" --hosts a,b --ssh "$work/ssh" sh -c '[ $HOST = a ] || exit 9; while :; do :; done' 2>"$work/errors"
check "a failure on one host ends the others" [ $? = 9 ]
check "the rank is named once" [ "$(grep -c "rank 1 ended with exit code 9" "$work/errors")" = 1 ]
# Rank 0 fails because rank 1 is about to be killed, and its host says so first.
"$launch" --hosts a,b,c --grace 100 --ssh "$work/ssh" sh -c '
  case $HOST in
    a) echo $$ >"$0/first.new"; mv "$0/first.new" "$0/first"; exit 3 ;;
    b) while [ ! -e "$0/first" ]; do :; done; while kill -0 $(cat "$0/first") 2>/dev/null; do :; done; kill -KILL $$ ;;
  esac
  while :; do :; done' "$work" 2>"$work/errors"
check "a killed rank is the reason, whichever host says so first" [ $? = 137 ]
"$launch" --hosts a,b --ssh false sh -c : 2>"$work/errors"
check "a host that cannot be reached is an error" [ $? = 1 ]
check "a host that cannot be reached is named" grep -q "host [ab] ended with exit code 1" "$work/errors"

# The connection to a host is lost.
rm -f "$work"/rank-* "$work/asked"
cat >"$work/far" <<'AGENT'
#!/bin/sh
shift
mkfifo "$(dirname "$0")/in"
sh -c "$*" <"$(dirname "$0")/in" &
exec 3>"$(dirname "$0")/in"
echo $$ >"$(dirname "$0")/far-id"
exec cat >&3
AGENT
chmod +x "$work/far"
"$launch" --hosts a --ssh "$work/far" sh -c 'echo $$ > "$0/id"; touch "$0/rank-0"; while :; do :; done' "$work" 2>/dev/null &
started=$!
wait_for "$work/rank-0"
kill -KILL "$(cat "$work/far-id")"
wait $started
check "a lost connection is an error" [ $? = 137 ]
goes "$(cat "$work/id")"
check "and ends the ranks there" true

# Programs that call from_environment().
"$launch" -n 3 "$topo" >"$work/output" 2>&1
check "rondo-topo under rondo-launch" grep -q "^\[0\] ring      0 -> 1 -> 2 -> 0" "$work/output"
"$launch" --hosts localhost:2 "$topo" >"$work/output" 2>&1
check "rondo-topo, meeting at an address with a secret" grep -q "^\[0\] ring      0 -> 1 -> 0" "$work/output"
exit $failed
