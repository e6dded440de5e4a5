#!/usr/bin/env bash
# What the wire between two test hosts carries, both ways at once, as iperf3's JSON:
#   tools/test_hosts.sh --hosts 2 -- tools/wire_rate.sh
set -euo pipefail
if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then
  exec iperf3 --server --one-off > /dev/null
fi
for attempt in $(seq 50); do
  if iperf3 --client 10.77.0.1 --time 4 --bidir --json > /tmp/wire.$$ 2>/dev/null; then break; fi
  sleep 0.1  # the server is not there yet
done
python3 - /tmp/wire.$$ <<'RATE'
import json, sys
end = json.load(open(sys.argv[1]))["end"]
ways = [end["sum_received"]["bits_per_second"], end["sum_received_bidir_reverse"]["bits_per_second"]]
print(json.dumps({"command": "iperf3 --time 4 --bidir", "gbit_per_second": [round(way / 1e9, 4) for way in ways]}))
RATE
rm -f /tmp/wire.$$
