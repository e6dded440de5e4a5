"""DeepSpeed's all-reduce in shared memory, in place, as bench/peers/all_reduce.c measures MPIs.

usage: PYTHON deepspeed_shm.py PROCESSES FIRST LAST FACTOR

PYTHON has torch, deepspeed and ninja (PyPI). DeepSpeed is built when it is first used. Calls are timed in C++, since a call of Python
takes longer than a small all-reduce.
"""
import os
import pathlib
import statistics
import subprocess
import sys

LOOP = """
#include <chrono>
#include <vector>
#include <torch/extension.h>
#include <ATen/core/dispatch/Dispatcher.h>
std::vector<double> time_calls(torch::Tensor data, int calls) {
  static const auto all_reduce = c10::Dispatcher::singleton()
      .findSchemaOrThrow("deepspeed::inference_all_reduce_", "").typed<at::Tensor&(at::Tensor&)>();
  std::vector<double> times;
  for (int call = 0; call < calls; ++call) {
    const auto start = std::chrono::steady_clock::now();
    all_reduce.call(data);
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return times;
}
"""


def measure(rank, processes, first, last, factor):
    import torch
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder
    from torch.utils.cpp_extension import load_inline

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=processes)
    loaded = []
    for turn in range(processes):  # the first builds what the others find
        if turn == rank:
            loaded = [ShareMemCommBuilder().load(verbose=False), load_inline("rondo_time_calls", LOOP, functions=["time_calls"])]
        torch.distributed.barrier()
    shared_memory, loop = loaded
    shared_memory.initialize(processes, rank)
    torch.distributed.barrier()

    def median_us(data, calls):
        times = torch.tensor(loop.time_calls(data, calls))
        torch.distributed.all_reduce(times, torch.distributed.ReduceOp.MAX)
        return statistics.median(times.tolist())

    size = first
    while size <= last:
        count = size // 4
        guess_us = median_us(torch.zeros(count), 5)
        median_us(torch.zeros(count), max(5, int(0.02e6 / guess_us)))
        data = (torch.arange(count) % 3 == 0).float()
        loop.time_calls(data, 1)
        right = bool((data == (torch.arange(count) % 3 == 0).float() * processes).all())
        us = median_us(torch.zeros(count), min(20000, max(10, int(0.33e6 / guess_us))))
        if rank == 0:
            print(f"{size} in_place {us:.3f}{'' if right else ' WRONG'}", flush=True)
        size *= factor
    torch.distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # threads of Gloo now and then end a process that leaves otherwise


def main():
    processes, *sizes = map(int, sys.argv[1:5])
    if "RANK" in os.environ:
        measure(int(os.environ["RANK"]), processes, *sizes)
        return
    environment = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(20000 + os.getpid() % 10000), LOCAL_SIZE=str(processes), DS_ACCELERATOR="cpu", OMP_NUM_THREADS="1")
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(environment, RANK=str(rank))) for rank in range(processes)]
    code = max(rank.wait() for rank in ranks)
    for left in pathlib.Path("/dev/shm").glob(f"deepspeed_allreduce_buffer_*_{environment['MASTER_PORT']}_*"):
        left.unlink()  # DeepSpeed leaves 66 MiB for each rank
    sys.exit(code)


main()
