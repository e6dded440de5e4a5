#!/bin/sh
# The functions of NCCL that PyTorch 2.15 links are all in a library, which exports nothing else but such: nccl_names.sh LIBRARY NAMES
set -eu
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }')
missing=0
while read -r name; do
  echo "$exported" | grep -qx "$name" || { echo "not exported: $name" >&2; missing=1; }
done <"$2"
if echo "$exported" | grep -v '^nccl' >&2; then
  echo "exported, and not NCCL's: above" >&2
  missing=1
fi
exit "$missing"
