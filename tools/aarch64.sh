#!/usr/bin/env bash
# Builds the library for AArch64 with Debian's cross compiler, and runs its unit tests under qemu. MPI, benchmarks
# and examples are left out. Arguments go to "meson test".
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh --aarch64
if [ ! -f build-aarch64/build.ninja ]; then
  meson setup build-aarch64 --cross-file tools/cross/aarch64.ini -Dmpi=disabled -Dhwloc=enabled -Dcuda=disabled \
    -Dtests=enabled -Dbenchmarks=disabled -Dexamples=disabled -Dwerror=true
fi
ninja -C build-aarch64
RONDO_TEST_SLOWNESS=10 meson test -C build-aarch64 --print-errorlogs --suite unit --timeout-multiplier 20 "$@"
