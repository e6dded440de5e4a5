#!/usr/bin/env python3
"""Checks the machine code of the kernels of a build: kernel_code.py BUILD_FOLDER [sm_90]

For every GPU that the build has code for, the memory operations of the protocol (src/fifo/atomics.hpp) must be what they are
meant to be, as far as that can be seen without following the branches:

- every kernel has loads and stores that other devices see in order, and all of these have system scope, since the other
  side may be the host or another device;
- a fence comes before a store or an atomic operation that others wait for, and nowhere else;
- behind a barrier of the block a fence comes before what hands the work of its threads on: once in the ring and in
  pairwise, and twice in direct, whose kernels have the ring, too;
- the caches that are not coherent are emptied after a load that waits, in all kernels that read what others wrote;
- one_shot has fences only where it gives up;
- direct takes and withdraws buffers by atomic operations;
- no kernel keeps anything in local memory.

With a GPU's name, only the code for that one is read, in a quarter of the time.

The disassembler comes from PyPI, in one pinned version.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
from collections import Counter

import from_pypi

VERSION = "13.5.37"
KERNEL = re.compile(r"Function : \w*?(ring|one_shot|direct|pairwise)_kernel")
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)")
# What orders memory operations of a thread, or is seen by others while the kernel runs.
ORDERED = re.compile(r"(LD|ST|ATOM|RED|LDG|STG|ATOMG|REDG)\..*STRONG|MEMBAR|CCTL")


def kernels(program, path, gpus):
    """Of each kernel in an object file: its kind, the GPU, and its instructions in order."""
    environment = os.environ | {"NVDISASM_PATH": str(program.parent)}
    text = subprocess.run([program, "-sass", *gpus, path], check=True, capture_output=True, text=True, env=environment).stdout
    gpu, kind, code = "", None, []
    for line in text.splitlines():
        if "Function :" in line or line.startswith("arch = "):
            if kind:
                yield kind, gpu, code
            found = KERNEL.search(line)
            kind, code = (found[1] if found else None), []
            gpu = line.removeprefix("arch = ").strip() if line.startswith("arch = ") else gpu
        elif kind and (found := INSTRUCTION.search(line)):
            code.append(found[1])
    if kind:
        yield kind, gpu, code


def faults(kind, code):
    """What is not as it is meant to be in one kernel."""
    ordered = [word for word in code if ORDERED.match(word)]
    count = Counter()
    for word in ordered:
        count[word.split(".")[0]] += 1
    # The threads of a block agree on who records a failure (Block::claim) at the device's scope.
    claims = [word for word in code if re.match(r"ATOMG?\.E\.EXCH\.STRONG\.GPU|ATOMS\.EXCH", word)]
    for word in ordered:
        if word not in claims and not word.startswith("CCTL") and not word.endswith("SYS"):
            yield f"{word} has not system scope"
    for word, after in zip(ordered, ordered[1:] + [""]):
        if word.startswith("MEMBAR") and not re.match(r"ST|ATOM|RED|CCTL", after):
            yield f"a fence before {after or 'the end'}"
    for before, word in zip([""] + ordered, ordered):
        if word.startswith("CCTL") and not re.match(r"LD|ATOM|MEMBAR", before):
            yield f"the caches are emptied after {before or 'nothing'}"
    for access in ("LD", "ST"):
        if not any(re.match(access + r"G?\..*STRONG", word) for word in ordered):
            yield f"no {access} that others see in order"
    if kind == "one_shot":
        if count["MEMBAR"] != 2 * len(claims):
            yield f"{count['MEMBAR']} fences, and {len(claims)} places that give up with two each"
    else:
        if not count["CCTL"]:
            yield "the caches are never emptied"
        ordered_or_barrier = [word.split(".")[0] for word in code if ORDERED.match(word) or word.startswith("BAR.SYNC")]
        behind_barriers = list(zip(ordered_or_barrier, ordered_or_barrier[1:])).count(("BAR", "MEMBAR"))
        if behind_barriers < (2 if kind == "direct" else 1):
            yield f"{behind_barriers} fences directly behind a barrier"
    if kind == "direct" and sum("MAX" in word for word in ordered) < 2:
        yield "no atomic operations that take and withdraw buffers"
    local = [word for word in code if re.match(r"(LDL|STL)\b", word)]
    if local:
        yield f"{len(local)} accesses of local memory"


def check(program, path, gpus):
    return [(kind, gpu, list(faults(kind, code))) for kind, gpu, code in kernels(program, path, gpus)]


def main():
    paths = sorted(pathlib.Path(sys.argv[1]).rglob("kernels_*.o"))
    if not paths:
        print("no kernels were built: nvcc was not found, or the option cuda is disabled")
        return 0
    program = from_pypi.program("cuobjdump", VERSION, ["nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm"])
    gpus = [word for gpu in sys.argv[2:] for word in ("-arch", gpu)]
    bad = 0
    seen = Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, results in zip(paths, pool.map(lambda path: check(program, path, gpus), paths)):
            for kind, gpu, wrong in results:
                seen[kind, gpu] += 1
                bad += len(wrong)
                for what in wrong:
                    print(f"{path.name}, {kind} for {gpu}: {what}")
    for (kind, gpu), number in sorted(seen.items()):
        print(f"{number:4} kernels of {kind} for {gpu}: read")
    names = sorted({gpu for _, gpu in seen})
    if not names:
        print("there is no machine code, only PTX")
        return 0
    for kind in ("ring", "one_shot", "direct", "pairwise"):
        numbers = {gpu: seen[kind, gpu] for gpu in names}
        if not all(numbers.values()) or len(set(numbers.values())) > 1:
            print(f"kernels of {kind} by GPU: {numbers}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
