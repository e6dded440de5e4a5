#!/usr/bin/env bash
# What tools/gpu_check.sh runs: sourced by it and by tools/gpu_bundle.sh.

# Prints for which GPUs kernels get machine code: those of this machine, or, where it has none, those that programs are
# often carried to. Code for every kind takes several times as long to make.
gpu_kinds() {
  local kinds
  kinds=$(timeout 20 nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n 's/^\([89]\|[1-9][0-9]\)\.\([0-9]\)$/sm_\1\2/p' | sort -u | paste -sd,)
  echo "${kinds:-sm_80,sm_90}"
}

# shellcheck disable=SC2034
gpu_setup=(-Dcuda=enabled -Dtests=enabled -Dbenchmarks=enabled -Dexamples=auto "-Dgpus=$(gpu_kinds)")

# Sets `targets` to the programs of a build folder, as paths in it. Some are there only with cuDNN and cuBLAS.
gpu_targets() {
  local target known
  targets=(tests/test_gpu_device_group tests/test_gpu_device_direct tests/test_gpu_device_exchanges
    tests/test_gpu_device_processes tests/test_gpu_device_gradients tools/rondo-topo bench/rondo-perf)
  known=$(ninja -C "$1" -t targets all)
  for target in bench/rondo-beside examples/lenet/rondo-lenet examples/systems/rondo-systems tests/test_gpu_lenet; do
    if [[ $known == *"$target:"* ]]; then targets+=("$target"); fi
  done
}

# Prints a hash of all sources that the programs are made of.
gpu_sources() {
  find bench cuda examples include src tests tools meson.build meson_options.txt \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.py' \
    -o -name '*.map' -o -name 'meson*' \) -type f | LC_ALL=C sort | xargs cat | sha1sum | cut -c1-12
}
