#!/usr/bin/env bash
# Builds examples/libtorch by CMake against an installation of this build and Debian's libtorch (RONDO_TEST_LIBTORCH: the folder of
# another), and trains with 2 ranks by Rondo and by MPI: the models must have the same bits. libtorch.sh BUILD_FOLDER CMAKELISTS
# MPIRUN; exit code 77 (skipped), with the reason, where there is no CMake or no libtorch.
set -euo pipefail
build=$1
cmakelists=$2
mpirun=$3
command -v cmake >/dev/null || { echo "skipped: there is no CMake"; exit 77; }
if [ -z "${RONDO_TEST_LIBTORCH:-}" ] && ! ls /usr/lib/*/cmake/Torch/TorchConfig.cmake >/dev/null 2>&1; then
  echo "skipped: there is no libtorch (Debian: libtorch-dev; RONDO_TEST_LIBTORCH names the folder of another)"
  exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
meson install -C "$build" --destdir "$folder/installed" --no-rebuild --quiet >/dev/null
config=$(find "$folder/installed" -name rondo-config.cmake)
if ! { cmake -S "$(dirname "$cmakelists")" -B "$folder/build" -DCMAKE_PREFIX_PATH="${config%/lib*/cmake/*};${RONDO_TEST_LIBTORCH:-}" &&
  cmake --build "$folder/build"; } >"$folder/log" 2>&1; then
  cat "$folder/log" >&2
  exit 1
fi
# Prints the hash of the model, once for each different one.
models() { # rondo|mpi
  timeout 100 "$mpirun" -n 2 "$folder/build/train" "$1" 20 >"$folder/output" 2>&1 || { cat "$folder/output" >&2; return 1; }
  [ "$(grep -c "after 20 steps" "$folder/output")" = 2 ] || { cat "$folder/output" >&2; return 1; }
  grep -o "model [0-9a-f]*" "$folder/output" | sort -u
}
theirs=$(models mpi)
ours=$(models rondo)
echo "2 ranks, by MPI: $theirs; by Rondo: $ours"
[ "$(echo "$ours" | wc -l)" = 1 ]
[ "$theirs" = "$ours" ]
