"""Trains LightGBM on several ranks, of which each has rows of its own, by Rondo or by LightGBM's own sockets.

usage: rondo-launch -n 2 python3 train.py --network NETWORK_LIBRARY|sockets [--trees 20] [--rows 20000] [--features 50] [--port 12400]

NETWORK_LIBRARY is the library of network.cpp beside this file. Prints the seconds of training, and a hash of the model, which is
the same on all ranks.
"""
import argparse
import ctypes
import hashlib
import os
import time

import lightgbm
import numpy


class Rondo:
    """The ranks of this job, as LightGBM's network until the block ends."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.size = self.library.rondo_lightgbm_join()
        self.rank = self.library.rondo_lightgbm_rank()
        self.parameters = {"num_machines": self.size}

    def __enter__(self):
        calls = [ctypes.cast(call, ctypes.c_void_p) for call in (self.library.rondo_lightgbm_reduce_scatter, self.library.rondo_lightgbm_all_gather)]
        if lightgbm.basic._LIB.LGBM_NetworkInitWithFunctions(self.size, self.rank, *calls) != 0:
            raise SystemExit("LightGBM does not take this network")

    def __exit__(self, *_):
        lightgbm.basic._LIB.LGBM_NetworkFree()
        self.library.rondo_lightgbm_leave()


class Sockets:
    """LightGBM's own network, between ranks of this host."""

    def __init__(self, port):
        self.size = int(os.environ["RONDO_SIZE"])
        self.rank = int(os.environ["RONDO_RANK"])
        machines = ",".join(f"127.0.0.1:{port + rank}" for rank in range(self.size))
        self.parameters = {"num_machines": self.size, "machines": machines, "local_listen_port": port + self.rank}

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def rows_of(rank, rows, features):
    random = numpy.random.default_rng(rank)
    values = random.standard_normal((rows, features))
    noise = 0.1 * random.standard_normal(rows)
    return values, values[:, 0] * values[:, 1] + numpy.sin(values[:, 2]) + noise


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", required=True)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--port", type=int, default=12400)
    options = parser.parse_args()
    network = Sockets(options.port) if options.network == "sockets" else Rondo(options.network)
    parameters = {"objective": "regression", "tree_learner": "data", "num_threads": 1, "pre_partition": True, "verbose": -1, **network.parameters}
    values, targets = rows_of(network.rank, options.rows, options.features)
    with network:
        booster = lightgbm.Booster(parameters, lightgbm.Dataset(values, targets, params=parameters))
        booster.update()  # the first tree is not measured: it makes connections
        begin = time.perf_counter()
        for _ in range(options.trees):
            booster.update()
        seconds = time.perf_counter() - begin
        model = booster.model_to_string().split("\nparameters:")[0]
    print(f"rank {network.rank}: {options.trees} trees in {seconds:.3f} s, model {hashlib.sha256(model.encode()).hexdigest()[:16]}", flush=True)


main()
