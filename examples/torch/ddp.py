"""Trains a small network by DistributedDataParallel: torchrun --nproc_per_node 2 ddp.py [BACKEND]

The backend is rondo, or gloo to compare. Each rank has samples of its own; all end with the same parameters.
"""
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

backend = sys.argv[1] if len(sys.argv) > 1 else "rondo"
if backend == "rondo":
    import rondo_torch  # noqa: F401  (torch 2.15 and later find the backend by themselves)

dist.init_process_group(backend)
torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
parallel = DistributedDataParallel(model)
optimizer = torch.optim.SGD(parallel.parameters(), lr=0.05)
patterns = torch.randn(10, 64)
torch.manual_seed(2 + dist.get_rank())
for step in range(101):
    classes = torch.randint(10, (32,))
    samples = patterns[classes] + torch.randn(32, 64)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(parallel(samples), classes)
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"rank {dist.get_rank()} of {dist.get_world_size()}, step {step}: loss {loss.item():.6f}", flush=True)
dist.destroy_process_group()
