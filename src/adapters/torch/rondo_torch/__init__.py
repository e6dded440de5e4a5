"""Rondo as a backend of torch.distributed, for tensors in host memory.

    torch.distributed.init_process_group("rondo")

finds it by its entry point from torch 2.15 on; older releases need `import rondo_torch` before. Messages (send, recv, also
from any source), sparse all-reduces and monitored_barrier go by Gloo, which torch has, since they have tags.

From then on tensors of 64 KiB and more are allocated in memory that the other ranks of the host reach, unless
RONDO_TORCH_ALLOCATOR=0 is set.
"""
import os

import torch
import torch.distributed as dist

from rondo_torch import _C

__all__ = ["create", "register"]

_registered = False


def create(store, rank, size, timeout, name="rondo"):
    """A backend of this rank, as torch.distributed makes it; waits for the other ranks."""
    gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout)
    return _C.create_backend(dist.PrefixStore("rondo", store), rank, size, timeout, gloo, name)


def register():
    """Makes the backend known to torch.distributed, and its allocator that of tensors. Does nothing the second time."""
    global _registered
    if _registered:
        return
    _registered = True
    if os.environ.get("RONDO_TORCH_ALLOCATOR", "1") != "0":
        _C.use_reachable_allocator()
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 0):
        dist.Backend.register_backend("rondo", create)
    else:
        dist.Backend.register_backend("rondo", create, devices=["cpu"])


register()
