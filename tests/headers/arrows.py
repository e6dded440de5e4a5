#!/usr/bin/env python3
"""Checks which folders of the library include which: arrows.py REPOSITORY

A folder may include the headers of those below it alone, as docs/architecture.md draws them: each line here names a folder
and those that it may use. `base` is for all.
"""
import pathlib
import re
import sys

BELOW = {
    "src/base": "",
    "src/schedule": "",
    "src/fifo": "",
    "src/reduce": "",
    "src/topology": "src/schedule",
    "src/memory": "",
    "src/carrier": "src/fifo src/memory",
    "src/bootstrap": "src/memory src/topology",
    "src/plan": "src/fifo src/schedule",
    "src/net": "src/carrier src/fifo src/memory",
    "src/engine": "src/carrier src/fifo src/memory src/net src/plan src/reduce src/schedule",
    "src/joining": "src/bootstrap src/carrier src/engine src/fifo src/memory src/net src/schedule src/topology",
    "src/communicator": "src/bootstrap src/engine src/joining src/net src/plan",
    "src/gradient": "src/communicator src/reduce src/schedule",
    "src/adapters": "",
    "cuda/api": "",
    "cuda/protocol": "src/engine src/fifo src/reduce src/schedule",
    "cuda/kernels": "cuda/api cuda/protocol src/fifo src/reduce",
    "cuda/engine": "cuda/api cuda/kernels cuda/protocol src/engine src/fifo src/memory src/net src/plan src/topology",
    "cuda/joining": "cuda/api cuda/engine cuda/kernels src/bootstrap src/communicator src/engine src/joining src/net src/plan src/topology",
    "cuda/communicator": "cuda/engine cuda/joining src/bootstrap src/communicator src/plan",
    "cuda/gradient": "cuda/api cuda/communicator cuda/kernels src/communicator src/gradient",
}
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def main():
    repository = pathlib.Path(sys.argv[1])
    wrong, used = [], set()
    for path in sorted((repository / "src").rglob("*.?pp")):
        room = path.relative_to(repository).parts[1]
        # Only what is above the public communicator stands on it.
        if room not in ("communicator", "gradient", "adapters") and "#include <rondo/communicator.hpp>" in path.read_text():
            wrong.append(f"{path.relative_to(repository)} includes the public communicator")
    for base in ("src", "cuda"):
        for path in sorted((repository / base).rglob("*")):
            place = path.relative_to(repository / base).parts
            if path.suffix not in (".hpp", ".cpp", ".cu") or len(place) < 2:
                continue
            room = f"{base}/{place[0]}"
            for name in INCLUDE.findall(path.read_text()):
                parts = name.split("/")
                other = "/".join(parts[:2]) if parts[0] == "cuda" else f"src/{parts[0]}"
                if len(parts) < 2:
                    continue
                if other in (room, "src/base"):
                    continue
                used.add((room, other))
                if other not in BELOW.get(room, "").split():
                    wrong.append(f"{path.relative_to(repository)} includes {name}, and {room} may not use {other}")
    unused = [(room, other) for room, others in BELOW.items() for other in others.split() if (room, other) not in used]
    wrong += [f"{room} is allowed to use {other}, and does not" for room, other in unused]
    for line in wrong:
        print(line)
    print(f"{len(used)} arrows between folders")
    return 1 if wrong or len(used) < 30 else 0


sys.exit(main())
