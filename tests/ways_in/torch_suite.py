#!/usr/bin/env python3
"""Runs torch's own tests of its collectives and of DistributedDataParallel, as the wheel brings them, on Gloo or on Rondo.

usage: torch_suite.py gloo|rondo RANKS [TEST ...]

The tests ask for the backend by its name, and many are for Gloo alone. So with `rondo`, what torch knows as "gloo" is Rondo:
each test that Gloo has to pass runs unchanged. One that asks the C++ backend for its name cannot pass. Prints a line for each test: its name, and ok, FAIL, ERROR or skip.
"""
import os
import sys
import tempfile
import unittest

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("gloo", "rondo"):
        sys.exit(__doc__)
    os.environ["RONDO_TEST_BACKEND"] = sys.argv[1]
    os.environ["WORLD_SIZE"] = sys.argv[2]
    os.environ["BACKEND"] = "gloo"
    os.environ["INIT_METHOD"] = "file://" + tempfile.mkdtemp() + "/shared_init_file"
    os.environ["TEMP_DIR"] = tempfile.mkdtemp()
    os.makedirs(os.environ["TEMP_DIR"] + "/barrier", exist_ok=True)
    os.makedirs(os.environ["TEMP_DIR"] + "/test_dir", exist_ok=True)

# Each rank is a process that imports this file again.
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

if os.environ.get("RONDO_TEST_BACKEND") == "rondo":
    import rondo_torch

    def create_as_gloo(store, rank, size, timeout):
        return rondo_torch.create(store, rank, size, timeout, "gloo")

    dist.Backend._plugins.pop("GLOO", None)
    dist.Backend.register_backend("gloo", create_as_gloo, devices=["cpu"])

from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend  # noqa: E402


class TestBackend(TestDistBackend, DistributedTest._DistTestBase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()


class Lines(unittest.TextTestResult):
    """One line for each test."""

    def line(self, test, outcome, reason=""):
        print(f"{test.id().rsplit('.', 1)[-1]} {outcome}{' ' + reason if reason else ''}", flush=True)

    def addSuccess(self, test):
        self.line(test, "ok")

    def addFailure(self, test, err):
        self.line(test, "FAIL", str(err[1]).splitlines()[0] if str(err[1]) else "")
        self.failures.append((test, self._exc_info_to_string(err, test)))

    def addError(self, test, err):
        self.line(test, "ERROR", str(err[1]).splitlines()[0] if str(err[1]) else "")
        self.errors.append((test, self._exc_info_to_string(err, test)))

    def addSkip(self, test, reason):
        self.line(test, "skip", reason)


if __name__ == "__main__":
    names = sys.argv[3:] or unittest.TestLoader().getTestCaseNames(TestBackend)
    suite = unittest.TestSuite(TestBackend(name) for name in names)
    result = unittest.TextTestRunner(stream=sys.stderr, resultclass=Lines, verbosity=0).run(suite)
    sys.exit(0 if result.wasSuccessful() else 1)
