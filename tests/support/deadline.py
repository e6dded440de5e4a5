#!/usr/bin/env python3
"""Runs a test, and ends it as a failure if it takes longer than its deadline, with the stacks of all threads of all
its processes, so that a hang says where it is.

usage: deadline.py BUILD_FOLDER PROGRAM ARGUMENTS...

Meson runs all tests by it (tests/meson.build). The deadline is the test's timeout there; Meson itself waits longer.
RONDO_TEST_SLOWNESS multiplies it: for emulators. Stacks come from eu-stack (Debian: elfutils).
"""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

WITHOUT_TIMEOUT_S = 600
FOR_STACKS = 0.8  # of the deadline, at most, to look at the processes: Meson waits for two deadlines in all
PR_SET_CHILD_SUBREAPER = 36


def deadline_of(folder, command):
    """Tests with the same command may differ in their environment; the longest counts."""
    tests = json.loads((pathlib.Path(folder) / "meson-info" / "intro-tests.json").read_text())
    timeouts = [test["timeout"] for test in tests if command[-len(test["cmd"]):] == test["cmd"]
                or command[:len(test["cmd"])] == test["cmd"]]
    return max(timeouts, default=WITHOUT_TIMEOUT_S) * float(os.environ.get("RONDO_TEST_SLOWNESS", "1"))


def descendants():
    """The processes that this one has started, directly or not. What they leave behind becomes its own child."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
        except OSError:
            pass  # it has ended
    found, left = [], [os.getpid()]
    while left:
        mine = sorted(children.get(left.pop(0), []))
        found += mine
        left += mine
    return found


def show_stacks(process, most_s):
    try:
        words = pathlib.Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return
    print(f"\n-- process {process}: {words}", flush=True)
    if shutil.which("eu-stack") is None:
        print("no stacks: eu-stack is not installed (Debian: elfutils)", flush=True)
        return
    try:
        subprocess.run(["eu-stack", "-p", str(process)], stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=most_s)
    except subprocess.TimeoutExpired:
        print("eu-stack did not end", flush=True)


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    seconds = deadline_of(folder, command)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    test = subprocess.Popen(command)
    try:
        code = test.wait(timeout=seconds)
        sys.exit(code if code >= 0 else 128 - code)
    except subprocess.TimeoutExpired:
        pass
    print(f"\nThe test has not ended after {seconds:g} s. What its processes do:", flush=True)
    processes = descendants()
    end = time.monotonic() + FOR_STACKS * seconds
    for process in processes:
        show_stacks(process, max(end - time.monotonic(), 0.1))
    # Until none is left: meanwhile some may have started others, which would keep Meson waiting for their output.
    while processes := descendants():
        for process in processes:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.wait()
    sys.exit(1)


if __name__ == "__main__":
    main()
