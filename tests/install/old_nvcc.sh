#!/usr/bin/env bash
# With an nvcc that is too old, -Dcuda=enabled is an error that names both versions, and -Dcuda=auto builds without the
# GPU part: old_nvcc.sh REPOSITORY
set -euo pipefail
repository=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/bin"
cat >"$folder/bin/nvcc" <<'NVCC'
#!/bin/sh
echo 'Cuda compilation tools, release 12.4, V12.4.131'
NVCC
chmod +x "$folder/bin/nvcc"
export PATH=$folder/bin:$PATH
set_up() {
  meson setup "$folder/$1" "$repository" "-Dcuda=$1" -Dmpi=disabled -Dhwloc=disabled -Dtests=disabled -Dbenchmarks=disabled -Dexamples=disabled
}
if output=$(set_up enabled); then
  echo "nvcc 12.4 was not refused" >&2
  exit 1
fi
[[ $output == *"needs nvcc 12.5 or newer; $folder/bin/nvcc is 12.4"* ]] || { echo "$output" >&2; exit 1; }
output=$(set_up auto)
[[ $output == *"built without the GPU part: $folder/bin/nvcc is 12.4"* ]] || { echo "$output" >&2; exit 1; }
