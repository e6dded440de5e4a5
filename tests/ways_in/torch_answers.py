#!/usr/bin/env python3
"""Makes each collective of torch.distributed twice, on Rondo and on Gloo, and compares what it gets; and trains a model on both.

usage: torch_answers.py RANKS
"""
import datetime
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel

import rondo_torch  # noqa: F401  (torch before 2.15 finds the backend by this)

if torch.__version__ >= "2.":
    from torch.testing._internal.distributed.fake_pg import FakeProcessGroup

RELEASE = tuple(int(part) for part in torch.__version__.split(".")[:2])
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64,
         torch.bool, torch.complex64, torch.complex128]
# Gloo sums these, too; the others are compared with what torch computes itself.
TYPES_OF_GLOO = [torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64]
COUNTS = [1, 7, 1000, 70_000]


class Ranks:
    def __init__(self):
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.rondo = dist.new_group(backend="rondo")
        self.gloo = dist.new_group(backend="gloo")
        self.compared = 0

    def values(self, count, dtype, rank=None):
        """Small integers, which differ in each element and on each rank, so that sums and products are exact."""
        numbers = (torch.arange(count) * 7 + (self.rank if rank is None else rank) * 3) % 5 + 1
        if dtype == torch.bool:
            return numbers % 3 == 0
        return numbers.to(dtype)

    def same(self, what, ours, theirs):
        self.compared += 1
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs), f"rank {self.rank}: {what}: {ours} is not {theirs}"

    def both(self, what, call, *tensors):
        """`call(group, *copies)` on both; compares the copies."""
        copies = [[tensor.clone() for tensor in tensors] for _ in range(2)]
        call(self.rondo, *copies[0])
        call(self.gloo, *copies[1])
        for ours, theirs in zip(*copies):
            self.same(what, ours, theirs)


def reductions(ranks):
    ops = dist.ReduceOp
    for dtype in TYPES:
        for count in COUNTS:
            all_values = torch.stack([ranks.values(count, dtype, rank) for rank in range(ranks.size)])
            for op in [ops.SUM, ops.PRODUCT, ops.MIN, ops.MAX, ops.BAND, ops.BOR, ops.BXOR]:
                by_bits = op in (ops.BAND, ops.BOR, ops.BXOR)
                if by_bits and (dtype.is_floating_point or dtype.is_complex) or dtype.is_complex and op != ops.SUM:
                    continue
                tensor = ranks.values(count, dtype)
                dist.all_reduce(tensor, op, group=ranks.rondo)
                expected = all_values[0]
                for other in all_values[1:]:
                    expected = {ops.SUM: torch.logical_or if dtype == torch.bool else torch.add,
                                ops.PRODUCT: torch.logical_and if dtype == torch.bool else torch.mul,
                                ops.MIN: torch.logical_and if dtype == torch.bool else torch.minimum,
                                ops.MAX: torch.logical_or if dtype == torch.bool else torch.maximum,
                                ops.BAND: torch.bitwise_and, ops.BOR: torch.bitwise_or, ops.BXOR: torch.bitwise_xor}[op](expected, other)
                ranks.same(f"all_reduce of {count} x {dtype}, {op}", tensor, expected)
                if dtype in TYPES_OF_GLOO and not (by_bits and dtype == torch.float16):
                    ranks.both(f"all_reduce of {count} x {dtype}, {op}", lambda group, x: dist.all_reduce(x, op, group=group),
                               ranks.values(count, dtype))
    for count in COUNTS:
        values = ranks.values(count, torch.float32)
        for root in range(ranks.size):
            copies = [values.clone(), values.clone()]
            dist.reduce(copies[0], root, group=ranks.rondo)
            dist.reduce(copies[1], root, group=ranks.gloo)
            if ranks.rank == root:
                ranks.same("reduce", *copies)
        own = torch.zeros(count)
        dist.reduce_scatter(own, [ranks.values(count, torch.float32) + i for i in range(ranks.size)], group=ranks.rondo)
        expected = sum(ranks.values(count, torch.float32, rank) + ranks.rank for rank in range(ranks.size))
        ranks.same("reduce_scatter", own, expected)
        work = dist.all_reduce(values, group=ranks.rondo, async_op=True)
        future = work.get_future()
        work.wait()
        ranks.same("all_reduce with a future", future.value()[0], sum(ranks.values(count, torch.float32, rank) for rank in range(ranks.size)))
    # Every second row of a matrix: elements that do not lie side by side.
    matrix = ranks.values(60, torch.float64).view(6, 10)
    dist.all_reduce(matrix[::2], group=ranks.rondo)
    expected = ranks.values(60, torch.float64).view(6, 10)
    expected[::2] = sum(ranks.values(60, torch.float64, rank).view(6, 10)[::2] for rank in range(ranks.size))
    ranks.same("all_reduce of rows", matrix, expected)


def moves(ranks):
    size, rank = ranks.size, ranks.rank
    for dtype in TYPES:
        for count in COUNTS:
            x = ranks.values(count, dtype)
            for root in range(size):
                ours = x.clone()
                dist.broadcast(ours, root, group=ranks.rondo)
                ranks.same("broadcast", ours, ranks.values(count, dtype, root))
            parts = [torch.zeros_like(x) for _ in range(size)]
            dist.all_gather(parts, x, group=ranks.rondo)
            for other, part in enumerate(parts):
                ranks.same("all_gather", part, ranks.values(count, dtype, other))
    for count in COUNTS:
        x = ranks.values(count, torch.int64)
        lists = [[torch.zeros_like(x) for _ in range(size)] if rank == 0 else None for _ in range(2)]
        for group, out in zip((ranks.rondo, ranks.gloo), lists):
            dist.gather(x, out, 0, group=group)
        for ours, theirs in zip(*(out or [] for out in lists)):
            ranks.same("gather", ours, theirs)
        inputs = [x + i for i in range(size)] if rank == size - 1 else None
        ranks.both("scatter", lambda group, out: dist.scatter(out, inputs, size - 1, group=group), torch.zeros_like(x))
        sent = [torch.full((i + rank + 1,), 10 * rank + i) for i in range(size)]
        received = [torch.zeros(rank + i + 1, dtype=torch.int64) for i in range(size)]
        dist.all_to_all(received, sent, group=ranks.rondo)
        for other, part in enumerate(received):
            ranks.same("all_to_all", part, torch.full((rank + other + 1,), 10 * other + rank))
        whole = torch.zeros(size * 3, dtype=torch.int64)
        dist.all_to_all_single(whole, torch.arange(size * 3) + 100 * rank, group=ranks.rondo)
        ranks.same("all_to_all_single", whole, torch.cat([torch.arange(3 * rank, 3 * rank + 3) + 100 * other for other in range(size)]))
    dist.barrier(group=ranks.rondo)
    message = ranks.values(5, torch.float32)
    if rank == 0:
        dist.send(message, 1, group=ranks.rondo, tag=7)
    elif rank == 1:
        got = torch.zeros(5)
        dist.recv(got, 0, group=ranks.rondo, tag=7)
        ranks.same("a message", got, ranks.values(5, torch.float32, 0))


def forms_of_one_tensor(ranks):
    size, rank = ranks.size, ranks.rank
    for count in [0, *COUNTS]:
        x = ranks.values(count, torch.float32)
        whole = torch.full((size * count,), -1.0)
        gather, scatter = [getattr(dist, name if hasattr(dist, name) else base) for name, base in
                           [("all_gather_into_tensor", "_all_gather_base"), ("reduce_scatter_tensor", "_reduce_scatter_base")]]
        gather(whole, x, group=ranks.rondo)
        everything = torch.cat([ranks.values(count, torch.float32, other) for other in range(size)])
        ranks.same("all_gather_into_tensor", whole, everything)
        own = torch.zeros(count)
        scatter(own, everything + rank, group=ranks.rondo)
        expected = size * ranks.values(count, torch.float32) + sum(range(size))
        ranks.same("reduce_scatter_tensor", own, expected)
        mean = x.clone()
        if RELEASE >= (2, 0):
            dist.all_reduce(mean, dist.ReduceOp.AVG, group=ranks.rondo)
            ranks.same("an average", mean, sum(ranks.values(count, torch.float32, other) for other in range(size)) / size)
    # A parameter of another memory format, with autograd on.
    image = torch.nn.Parameter(ranks.values(120, torch.float32).view(2, 3, 4, 5).to(memory_format=torch.channels_last))
    dist.broadcast(image, 0, group=ranks.rondo)
    ranks.same("broadcast of a parameter", image.detach().contiguous().view(-1), ranks.values(120, torch.float32, 0))


def callbacks(ranks):
    """A function that is told of a call's end makes another call, and waits for it."""
    first = dist.all_reduce(ranks.values(1000, torch.float32), group=ranks.rondo, async_op=True).get_future()

    def then(future):
        second = dist.all_reduce(future.value()[0], group=ranks.rondo, async_op=True)
        second.wait()
        return second.get_future().value()[0]

    result = first.then(then).wait()
    expected = ranks.size * sum(ranks.values(1000, torch.float32, rank) for rank in range(ranks.size))
    ranks.same("an all_reduce in a callback", result, expected)
    with torch.inference_mode():
        parts = [torch.zeros(5) for _ in range(ranks.size)]
        dist.all_gather(parts, ranks.values(5, torch.float32), group=ranks.rondo, async_op=True).wait()
        ranks.same("all_gather in inference mode", parts[0].clone(), ranks.values(5, torch.float32, 0))


def coalesced(ranks):
    tensors = [ranks.values(count, torch.float32) for count in COUNTS]
    work = ranks.rondo.allreduce_coalesced(tensors)
    work.wait()
    for count, tensor in zip(COUNTS, tensors):
        ranks.same("all_reduce_coalesced", tensor, sum(ranks.values(count, torch.float32, rank) for rank in range(ranks.size)))
    inputs = [ranks.values(count, torch.float32) for count in COUNTS]
    outputs = [torch.zeros(ranks.size * count) for count in COUNTS]
    ranks.rondo.allgather_into_tensor_coalesced(outputs, inputs).wait()
    for count, output in zip(COUNTS, outputs):
        ranks.same("all_gather coalesced", output, torch.cat([ranks.values(count, torch.float32, other) for other in range(ranks.size)]))
    owns = [torch.zeros(count) for count in COUNTS]
    ranks.rondo.reduce_scatter_tensor_coalesced(owns, outputs).wait()
    for own, one in zip(owns, inputs):
        ranks.same("reduce_scatter coalesced", own, ranks.size * one)


def split(ranks):
    for _ in range(2):
        group = dist.split_group(parent_pg=ranks.rondo, split_ranks=[list(range(ranks.size))])
        one = torch.ones(3)
        dist.all_reduce(one, group=group)
        ranks.same("all_reduce of a split group", one, torch.full((3,), float(ranks.size)))


def tensors_on_devices(ranks):
    """They go to another backend, which is made when the first one comes."""
    meta, backend = torch.empty(2 * ranks.size, device="meta"), ranks.rondo._get_backend(torch.device("cpu"))
    try:
        backend.allreduce([meta])
        raise AssertionError("a tensor that is not in host memory was summed")
    except RuntimeError as error:
        assert "LD_PRELOAD=FOLDER/rondo/libnccl.so.2" in str(error) or "not in host memory" in str(error), error
    made = []

    def make(_store, rank, size, _timeout):
        made.append(FakeProcessGroup._create_internal(rank, size) if hasattr(FakeProcessGroup, "_create_internal") else FakeProcessGroup(rank, size))
        return made[-1]

    store = dist.PrefixStore("devices", dist.distributed_c10d._get_default_store())
    other = rondo_torch.create(store, ranks.rank, ranks.size, datetime.timedelta(seconds=60), "rondo", make)
    values = ranks.values(5, torch.float32)
    other.allreduce([values]).wait()
    ranks.same("all_reduce beside devices", values, sum(ranks.values(5, torch.float32, rank) for rank in range(ranks.size)))
    assert not made
    part, parts = torch.empty(2, device="meta"), [torch.empty(2, device="meta") for _ in range(ranks.size)]
    own = lambda lists: lists if ranks.rank == 0 else []  # noqa: E731
    calls = [lambda: other.allreduce([meta]), lambda: other.broadcast([meta]), lambda: other.reduce([meta]), lambda: other.send([meta], 0, 0),
             lambda: other.recv([meta], 0, 0), lambda: other.allgather([parts], [part]), lambda: other.reduce_scatter([part], [parts]),
             lambda: other._allgather_base(meta, part), lambda: other._reduce_scatter_base(part, meta), lambda: other.alltoall(parts, parts),
             lambda: other.scatter([part], own([parts])), lambda: other.gather(own([parts]), [part]), lambda: other.alltoall_base(meta, meta, [], [])]
    for call in calls:
        assert type(call()).__name__ == "FakeWork" or call().wait()
    assert len(made) == 1


def train(ranks, group):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(30, 500), torch.nn.ReLU(), torch.nn.Linear(500, 10))
    model = DistributedDataParallel(model, process_group=group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(ranks.rank)
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(model(torch.randn(16, 30, generator=data)), torch.randint(0, 10, (16,), generator=data))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return torch.cat([parameter.detach().view(-1) for parameter in model.parameters()])


def a_group_that_ends(ranks):
    """The others get an error when a rank fails."""
    group = dist.new_group(backend="rondo")
    dist.barrier(group=group)
    if ranks.rank == 0:
        group._get_backend(torch.device("cpu")).abort()
    try:
        for _ in range(10**6):
            dist.all_reduce(torch.ones(3), group=group)
    except RuntimeError as error:
        return "torch.distributed has aborted" in str(error)
    return False


def run(rank, size, store):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=size)
    ranks = Ranks()
    reductions(ranks)
    moves(ranks)
    forms_of_one_tensor(ranks)
    callbacks(ranks)
    ours, theirs = train(ranks, ranks.rondo), train(ranks, ranks.gloo)
    if size == 2:  # of two ranks' sums there is one order
        ranks.same("a trained model", ours, theirs)
    else:
        assert torch.allclose(ours, theirs, atol=1e-6), "trained models differ"
    sub = dist.new_group(list(range(1, size)), backend="rondo")
    if rank > 0:
        one = torch.ones(1)
        dist.all_reduce(one, group=sub)
        ranks.same("all_reduce of a sub-group", one, torch.full((1,), float(size - 1)))
    dist.barrier()
    if RELEASE >= (2, 15):
        coalesced(ranks)
        tensors_on_devices(ranks)
        split(ranks)
        assert a_group_that_ends(ranks), "an aborted group has gone on"
    if rank == 0:
        print(f"{size} ranks, torch {torch.__version__}: {ranks.compared} answers compared, all equal", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ranks = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (ranks, os.path.join(folder, "store")), nprocs=ranks)
