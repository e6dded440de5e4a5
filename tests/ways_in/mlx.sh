#!/bin/sh
# MLX's sums by Rondo are exact: mlx.sh MPIRUN LIBRONDO_MPI. RONDO_TEST_MLX_PYTHON is a Python that has MLX; exit code 77 (skipped), with the
# reason, without one.
set -eu
python=${RONDO_TEST_MLX_PYTHON:-python3}
if ! "$python" -c "import mlx.core" 2>/dev/null; then
  echo "skipped: RONDO_TEST_MLX_PYTHON names no Python that has MLX (pip install 'mlx[cpu]')"
  exit 77
fi
program=$(mktemp)
trap 'rm -f "$program"' EXIT
cat >"$program" <<'MLX'
import mlx.core as mx

ranks = mx.distributed.init(backend="mpi")
for count in [7] * 20 + [1000, 300000]:  # Rondo makes the calls from the sixteenth on
    values = mx.arange(count) * (ranks.rank() + 1)
    total = mx.distributed.all_sum(values)
    gathered = mx.distributed.all_gather(values[:3])
    mx.eval(total, gathered)
    assert mx.array_equal(total, mx.arange(count) * 3).item()
    assert gathered.tolist() == [0, 1, 2, 0, 2, 4]
with open("/proc/self/maps", encoding="utf-8") as maps:
    assert "librondo_mpi" in maps.read()
print(f"rank {ranks.rank()} of {ranks.size()}: exact")
MLX
output=$(MLX_MPI_LIBNAME=$2 timeout 120 "$1" -n 2 "$python" "$program")
echo "$output"
[ "$(echo "$output" | grep -c "of 2: exact")" = 2 ]
