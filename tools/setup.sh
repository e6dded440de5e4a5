#!/usr/bin/env bash
# Installs the missing packages that Rondo needs on Debian 12 and 13, and prints their names.
# With --library, only what the library and its programs need; with --torch, also what rondo_torch needs, Debian's PyTorch
# among it; with --demo, what tools/demo.sh needs; else what all tests need, such as PyTorch, which the trainer's models are
# compared with. With --lint, also what .ci/run needs: Clang, for the format check and as a second compiler, ccache, and
# what tools/lint.py needs to fetch clang-tidy; with --aarch64, also what tools/aarch64.sh needs, which adds arm64 as a foreign
# architecture of this system; with --bench, also the libraries that tools/bench.sh compares Rondo with; with --bare, only
# what tools/bare.sh needs.
set -euo pipefail

# dpkg-dev tells Meson in which folder Debian keeps libraries: without, they would be installed where nothing looks.
packages=(
  g++ meson ninja-build pkg-config dpkg-dev
  libopenmpi-dev openmpi-bin libhwloc-dev libhwy-dev libfmt-dev libsodium-dev libucx-dev
  libcli11-dev nlohmann-json3-dev libasio-dev libxxhash-dev
)
of_trainers=(libdnnl-dev zlib1g-dev dataset-fashion-mnist)
of_torch=(python3-torch libtorch-dev python3-dev python3-setuptools python3-wheel python3-pip pybind11-dev)
case ${1:-} in
  --library) ;;
  --torch) packages+=("${of_torch[@]}") ;;
  --demo) packages+=("${of_trainers[@]}") ;;
  *) packages+=("${of_trainers[@]}" "${of_torch[@]}" libgtest-dev libbenchmark-dev iproute2 elfutils cmake python3-matplotlib abigail-tools
    doxygen doxygen-awesome-css) ;;
esac
if [ "${1:-}" = --lint ]; then packages+=(clang-format-19 clang-19 libclang-rt-19-dev libomp-19-dev python3-venv ccache); fi
if [ "${1:-}" = --bare ]; then packages=(debootstrap git); fi
if [ "${1:-}" = --aarch64 ]; then
  # Other distributions keep packages for foreign architectures on other servers.
  grep -qx 'ID=debian' /etc/os-release || { echo "setup: --aarch64 is for Debian" >&2; exit 1; }
  packages+=(g++-aarch64-linux-gnu qemu-user {libc6-dev,libhwloc-dev,libhwy-dev,libfmt-dev,libgtest-dev}:arm64)
fi
if [ "${1:-}" = --bench ]; then packages+=(mpich libmpich-dev libgloo-dev iperf3); fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "installing: ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: not root and no sudo; as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo DEBIAN_FRONTEND=noninteractive)
fi
export DEBIAN_FRONTEND=noninteractive
if [ "${1:-}" = --aarch64 ]; then "${as_root[@]}" dpkg --add-architecture arm64; fi
if ! { "${as_root[@]}" apt-get update -q &&
  "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"; }; then
  echo "setup: these packages could not be installed: ${missing[*]}. Is there a network that reaches Debian's servers? What apt-get said is above." >&2
  exit 1
fi
