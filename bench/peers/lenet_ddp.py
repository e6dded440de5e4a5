#!/usr/bin/env python3
"""The same LeNet on Fashion-MNIST by PyTorch's DistributedDataParallel over Gloo, for comparison.

usage: bench/peers/lenet_ddp.py [--ranks 2] [--epochs 3] [--batch-size 256] [--lr 0.2] [--seed 1] [--data DIR]
                                [--device cuda]

One process a rank, one thread each. Prints the seconds of training of each epoch and the test accuracy. Needs
Debian's python3-torch (with libopenblas0, which it uses for matrix products). With --device cuda and one rank,
the data set, too, is resident on the GPU.
"""
import argparse
import gzip
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy  # noqa: E402
import torch  # noqa: E402
import torch.distributed  # noqa: E402
import torch.multiprocessing  # noqa: E402


def read_idx(file):
    with gzip.open(file, "rb") as stream:
        data = stream.read()
    dims = data[3]
    shape = numpy.frombuffer(data, ">u4", dims, 4)
    return torch.from_numpy(numpy.frombuffer(data, "u1", offset=4 + 4 * dims).reshape(shape.tolist()).copy())


def read(folder, prefix):
    images = read_idx(f"{folder}/{prefix}-images-idx3-ubyte.gz").unsqueeze(1)
    return images, read_idx(f"{folder}/{prefix}-labels-idx1-ubyte.gz").long()


def make_model():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 20, 3), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
        torch.nn.Conv2d(20, 50, 5), torch.nn.ReLU(), torch.nn.AvgPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(800, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
        else:
            torch.nn.init.normal_(parameter, 0, 0.01)
    return model


def run(rank, options):
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{options.port}", rank=rank,
                                         world_size=options.ranks)
    device = torch.device(options.device)
    images, labels = (part.to(device) for part in read(options.data, "train"))
    test_images, test_labels = (part.to(device) for part in read(options.data, "t10k"))
    model = make_model().to(device)
    done = torch.cuda.synchronize if options.device == "cuda" else lambda: None
    parallel = torch.nn.parallel.DistributedDataParallel(model) if options.ranks > 1 else model
    optimizer = torch.optim.SGD(parallel.parameters(), lr=options.lr)
    criterion = torch.nn.CrossEntropyLoss()
    for epoch in range(options.epochs):
        torch.distributed.barrier()
        start = time.monotonic()
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(options.seed * 1000 + epoch))
        for batch in order.to(device).split(options.batch_size):
            mine = batch[rank::options.ranks]
            optimizer.zero_grad()
            criterion(parallel(images[mine].float() / 255), labels[mine]).backward()
            optimizer.step()
        done()
        torch.distributed.barrier()
        seconds = time.monotonic() - start
        if rank == 0:
            with torch.no_grad():
                right = sum((model(part.float() / 255).argmax(1) == answer).sum().item()
                            for part, answer in zip(test_images.split(500), test_labels.split(500)))
            print(f"epoch {epoch + 1:>2}/{options.epochs}  {seconds:6.2f} s  test accuracy {right / len(test_labels):.4f}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=29511)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()
    torch.multiprocessing.spawn(run, (options,), options.ranks)


if __name__ == "__main__":
    main()
