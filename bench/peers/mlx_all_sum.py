"""Times MLX's all_sum over MPI: MLX_MPI_LIBNAME=LIBRARY mpirun -n 2 --bind-to core python3 mlx_all_sum.py

Prints the median of the calls, which allocate their results. MLX is not among the packages of tools/setup.sh: pip install "mlx[cpu]".
"""
import statistics
import time

import mlx.core as mx

ranks = mx.distributed.init(backend="mpi")
for count, calls in ((1 << 10, 60), (1 << 18, 60), (1 << 24, 20)):
    values = mx.ones((count,))
    mx.eval(values)
    seconds = []
    for _ in range(calls):
        begin = time.perf_counter()
        mx.eval(mx.distributed.all_sum(values))
        seconds.append(time.perf_counter() - begin)
    if ranks.rank() == 0:
        print(f"{4 * count} bytes: {statistics.median(seconds) * 1e6:.0f} us", flush=True)
