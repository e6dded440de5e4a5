#!/bin/sh
# Builds rondo_torch for the torch of a Python, with the library of this build, and compares its answers with those of Gloo:
# torch.sh SOURCE_FOLDER BUILD_FOLDER. The Python: $RONDO_TEST_TORCH_PYTHON, else Debian's (python3-torch, libtorch-dev).
set -eu
source_folder=$1
build_folder=$2
python=${RONDO_TEST_TORCH_PYTHON:-/usr/bin/python3}
if ! "$python" -c '
import os, sys
from torch.utils import cpp_extension
headers = [os.path.join(path, "torch/csrc/distributed/c10d/Store.hpp") for path in cpp_extension.include_paths() + ["/usr/include"]]
sys.exit(0 if any(map(os.path.exists, headers)) else 1)' 2>/dev/null; then
  echo "skipped: $python has no torch, or not its headers (Debian: python3-torch, libtorch-dev, python3-setuptools)"
  exit 77
fi
folder=$build_folder/tests/rondo_torch
mkdir -p "$folder"
cat >"$folder/rondo.pc" <<EOF
Name: rondo
Description: of this build
Version: 0
Libs: -L$build_folder/src -lrondo
Cflags: -I$source_folder/include -I$build_folder/include
EOF
cd "$source_folder/src/adapters/torch"
if ! CUDA_HOME='' RONDO_TORCH_PKG_CONFIG=$folder "$python" setup.py -q build --build-base "$folder" --build-lib "$folder/lib" \
  >"$folder/log" 2>&1; then
  cat "$folder/log"
  exit 1
fi
for ranks in 2 3; do
  PYTHONPATH=$folder/lib timeout 300 "$python" "$source_folder/tests/ways_in/torch_answers.py" "$ranks"
done
# An example's losses are the same with both backends.
losses() { # BACKEND
  PYTHONPATH=$folder/lib timeout 300 "$build_folder/tools/rondo-launch" -n 2 --torch "$python" "$source_folder/examples/torch/ddp.py" "$1" | sort
}
theirs=$(losses gloo)
ours=$(losses rondo)
echo "examples/torch/ddp.py:"
echo "$ours"
[ "$(echo "$ours" | grep -c "step 100: loss")" = 2 ]
[ "$ours" = "$theirs" ]
