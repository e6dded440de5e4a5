#!/bin/sh
# Checks that a library exports every function named in a file, and no other than NCCL's: nccl_names.sh LIBRARY NAMES
# The file has those that PyTorch 2.15 links.
set -eu
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }')
missing=0
while read -r name; do
  echo "$exported" | grep -qx "$name" || { echo "not exported: $name" >&2; missing=1; }
done <"$2"
others=$(echo "$exported" | grep -v '^nccl' || true)
if [ -n "$others" ]; then
  echo "exported, and not NCCL's: $others" >&2
  missing=1
fi
exit "$missing"
