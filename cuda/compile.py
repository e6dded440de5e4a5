#!/usr/bin/env python3
"""Runs nvcc and keeps what its assembler says of each kernel: compile.py RECORD NVCC ARGUMENTS...

RECORD gets one JSON line for each kernel and architecture: registers, bytes spilled, shared and stack bytes.
"""
import json
import re
import subprocess
import sys


def records(text):
    kernel = None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '(\w+)' for '(sm_\w+)'", line):
            kernel = {"kernel": match[1], "arch": match[2]}
        elif kernel and (match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)):
            kernel |= {"stack": int(match[1]), "spilled": int(match[2]) + int(match[3])}
        elif kernel and (match := re.search(r"Used (\d+) registers", line)):
            shared = re.search(r"(\d+) bytes smem", line)
            yield kernel | {"registers": int(match[1]), "shared": int(shared[1]) if shared else 0}
            kernel = None


record, *command = sys.argv[1:]
result = subprocess.run(command[:1] + ["-Xptxas", "-v"] + command[1:], capture_output=True, text=True)
if result.returncode != 0:
    sys.stderr.write(result.stdout + result.stderr)
    sys.exit(result.returncode)
with open(record, "w") as file:
    for kernel in records(result.stdout + result.stderr):
        file.write(json.dumps(kernel) + "\n")
