#!/usr/bin/env bash
# Installs Rondo on Debian 12 or 13, with what it needs: tools/install.sh [--torch] [BUILD_FOLDER]
# The library, its headers and its programs go to /usr/local; with --torch, also rondo_torch, for Debian's PyTorch, which is
# installed too. Builds in the folder build-library, or in the one that is named.
set -euo pipefail
sources=$(cd "$(dirname "$0")/.." && pwd)
torch=""
if [ "${1:-}" = --torch ]; then
  torch=torch
  shift
fi
folder=$(realpath -m "${1:-$sources/build-library}")
as_root=()
if [ "$(id -u)" != 0 ]; then as_root=(sudo); fi
cd "$sources"
[ "$(id -u)" = 0 ] || command -v sudo >/dev/null || { echo "install: not root and no sudo; run this as root" >&2; exit 1; }

tools/setup.sh "--${torch:-library}"
tools/build.sh "$folder" -Dtests=disabled -Dbenchmarks=disabled -Dexamples=disabled
"${as_root[@]}" meson install -C "$folder" --no-rebuild --quiet
"${as_root[@]}" ldconfig
if [ -n "$torch" ]; then
  # Built as this user, installed as root, for all users.
  rm -rf "$folder/wheels"
  RONDO_TORCH_PKG_CONFIG=$(pkg-config --variable=pcfiledir rondo) PYTHONPATH="" PYTHONNOUSERSITE=1 \
    /usr/bin/python3 -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir "$folder/wheels" ./src/adapters/torch
  "${as_root[@]}" /usr/bin/python3 -m pip install --quiet --no-index --no-deps --force-reinstall --break-system-packages "$folder"/wheels/rondo_torch-*.whl
fi
echo "installed: $(pkg-config --modversion rondo)${torch:+, and rondo_torch for /usr/bin/python3}"
