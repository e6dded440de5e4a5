#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Arguments go to "meson test".
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
tools/build.sh build -Dmpi=enabled -Dhwloc=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=enabled
code=0
meson test -C build --print-errorlogs "$@" || code=$?
python3 - build/meson-logs/testlog.json <<'SKIPPED'
import json, sys
for line in open(sys.argv[1]):
    test = json.loads(line)
    if test["result"] == "SKIP":
        print(f"not run: {test['name']}: {test.get('stdout', '').strip()}")
SKIPPED
tests=$(meson test -C build --list 2>/dev/null)
if [[ $tests != *gpu_device_group* ]]; then
  echo "not built: the tests that need a GPU, since the folder has no GPU part; tools/build.sh build -Dcuda=enabled builds it"
fi
exit $code
