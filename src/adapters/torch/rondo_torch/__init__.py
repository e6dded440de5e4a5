"""Rondo as a backend of torch.distributed.

    torch.distributed.init_process_group("rondo")

finds it by its entry point from torch 2.15 on; older releases need `import rondo_torch` before. For tensors in host memory,
messages (send, recv, also from any source), sparse all-reduces and monitored_barrier go by Gloo, which torch has, since they
have tags.

Tensors on GPUs go by torch's own code for NCCL, over Rondo's libnccl.so.2, which LD_PRELOAD must name then.

With RONDO_TORCH_ALLOCATOR=1 all tensors of 64 KiB and more are allocated in memory that the other ranks of the host reach.
Processes that are forked then (workers of a DataLoader, say) share such tensors with their parent: what they write to them,
it reads. Without, only the buckets of DistributedDataParallel are (from torch 2.15 on).
"""
import os

import torch
import torch.distributed as dist

from rondo_torch import _C

__all__ = ["create", "register"]

_registered = False


def _make_gloo(store, rank, size, timeout):
    return dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout)


def _make_for_devices(store, rank, size, timeout):
    if not hasattr(dist, "ProcessGroupNCCL"):
        raise RuntimeError("rondo: a tensor is not in host memory, and this PyTorch was built without what calls NCCL for tensors on GPUs")
    if not _C.nccl_is_rondo():
        raise RuntimeError("rondo: tensors on GPUs go by Rondo's libnccl.so.2, and this process has another one: start it with "
                           "LD_PRELOAD=FOLDER/rondo/libnccl.so.2, where FOLDER has librondo.so")
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timeout
    return dist.ProcessGroupNCCL(dist.PrefixStore("devices", store), rank, size, options)


def create(store, rank, size, timeout, name="rondo", make_for_devices=_make_for_devices):
    """A backend of this rank, as torch.distributed makes it; waits for the other ranks."""
    return _C.create_backend(store, rank, size, timeout, _make_gloo, make_for_devices, name)


def register():
    """Makes the backend known to torch.distributed, and its allocator that of tensors. Does nothing the second time."""
    global _registered
    if _registered:
        return
    _registered = True
    os.environ.setdefault("DDP_DISABLE_COMM_MEM", "0")
    if os.environ.get("RONDO_TORCH_ALLOCATOR", "0") != "0":
        _C.use_reachable_allocator()
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 0):
        dist.Backend.register_backend("rondo", create)
    else:
        dist.Backend.register_backend("rondo", create, devices=["cpu", "cuda"])


register()
