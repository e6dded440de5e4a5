#!/usr/bin/env bash
# LightGBM trains by Rondo as by its own sockets: lightgbm.sh RONDO_LAUNCH NETWORK_LIBRARY TRAIN. RONDO_TEST_PYTHON is a Python that
# has LightGBM (python3 otherwise); exit code 77 (skipped), with the reason, where it has none.
set -euo pipefail
launch=$1
network=$2
train=$3
python=${RONDO_TEST_PYTHON:-python3}
if ! "$python" -c "import lightgbm" 2>/dev/null; then
  echo "skipped: $python has no LightGBM (RONDO_TEST_PYTHON=\$(tools/from_pypi.py lightgbm==4.7.0) names one)"
  exit 77
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# Ports that nobody listens at, and that the system gives to nobody who asks for any.
port=$("$python" -c '
import random, socket
def is_free(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0
while True:
    first = random.randrange(20000, 32000)
    if all(is_free(first + rank) for rank in range(5)):
        print(first)
        break')
# Prints the hash of the model, once for each different one.
models() { # RANKS NETWORK
  if ! timeout 100 "$launch" -n "$1" "$python" "$train" --network "$2" --port "$port" --trees 5 --rows 3000 >"$output" 2>&1; then
    cat "$output" >&2
    return 1
  fi
  [ "$(grep -c "trees in" "$output")" = "$1" ] || { cat "$output" >&2; return 1; }
  grep -o "model [0-9a-f]*" "$output" | sort -u
}
for ranks in 2 3; do
  theirs=$(models "$ranks" sockets)
  ours=$(models "$ranks" "$network")
  echo "$ranks ranks: by LightGBM's sockets $theirs; by Rondo $ours"
  [ "$theirs" = "$ours" ]
  port=$((port + ranks))
done
