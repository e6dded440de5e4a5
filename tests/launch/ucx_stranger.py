#!/usr/bin/env python3
"""What a stranger who reaches UCX's own ports can and cannot do: ucx_stranger.py RONDO_LAUNCH RONDO_PERF.

Two ranks of this host make calls by UCX and check every element. Meanwhile this program connects to each port at which they
listen, and says nothing, or random bytes, or what UCX expects first and then random bytes."""
import glob
import os
import re
import socket
import struct
import subprocess
import sys
import time

UCX_MAGIC = struct.pack("<Q", 0xCAFEBABE12345678)  # begins each connection of UCX over TCP
CONNECTIONS = 20  # to each port


def sockets_of(process):
    """The inodes of the sockets that a process has open."""
    found = set()
    for link in glob.glob(f"/proc/{process}/fd/*"):
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if target.startswith("socket:["):
            found.add(target[8:-1])
    return found


def ports_of(process):
    """The IPv4 addresses at which a process listens; none before it is connected by TCP to another one."""
    listening, connected = [], False
    mine = sockets_of(process)
    try:
        with open(f"/proc/{process}/net/tcp") as table:
            lines = table.read().splitlines()[1:]
    except OSError:
        return []  # it has ended
    for line in lines:
        words = line.split()
        if words[9] not in mine:
            continue
        address, port = words[1].split(":")
        name = ".".join(str(byte) for byte in bytes.fromhex(address)[::-1])
        if words[3] == "0A":
            listening.append((name if name != "0.0.0.0" else "127.0.0.1", int(port, 16)))
        connected |= words[3] == "01"
    return listening if connected else []


def children_of(process):
    try:
        with open(f"/proc/{process}/task/{process}/children") as children:
            return [int(word) for word in children.read().split()]
    except FileNotFoundError:
        return []  # it has ended


def ranks_of(launcher):
    """rondo-launch's only child starts the ranks."""
    return [rank for supervisor in children_of(launcher) for rank in children_of(supervisor)]


def attack(first_words, size_of_noise):
    """Returns the exit code of the ranks' launcher, and what it printed."""
    program = [sys.argv[2], "--carrier", "ucx", "--algo", "auto", "-b", "256KiB", "-e", "256KiB", "-n", "6000", "-w", "1"]
    run = subprocess.Popen([sys.argv[1], "-n", "2", *program],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "RONDO_TIMEOUT": "60"})
    ports_of_ranks = []
    while run.poll() is None and not (len(ports_of_ranks) == 2 and all(ports_of_ranks)):
        ports_of_ranks = [ports_of(rank) for rank in ranks_of(run.pid)]
    ports = sum(ports_of_ranks, [])
    connections = []
    for address in ports * CONNECTIONS:
        try:
            connection = socket.create_connection(address, timeout=10)
        except OSError:
            continue  # that rank has ended
        connections.append(connection)
        try:
            connection.sendall(first_words + os.urandom(size_of_noise))
        except OSError:
            pass  # that rank has closed it
    if not connections:
        run.kill()
        sys.exit(f"FAILED: nobody could connect: {run.communicate()[0]}")
    time.sleep(0.5)  # not to wait for anything: ranks make calls while the connections are open
    for connection in connections:
        connection.close()
    output = run.communicate()[0]
    return run.returncode, output


def check(what, condition, output):
    print(f"{'ok' if condition else 'FAILED'}: {what}")
    if not condition:
        sys.exit(output)


for name, words, noise in (("that says nothing", b"", 0), ("that sends random bytes", b"", 4096)):
    code, printed = attack(words, noise)
    check(f"a stranger {name} changes no result", code == 0 and "# 0 wrong elements" in printed, printed)
code, printed = attack(UCX_MAGIC, 4096)
# It may end a rank: UCX checks what it receives by assertions. It must not hang the others, or change a result.
aborted = code == 128 + 6 and "was ended by signal 6" in printed
wrong = re.search(r"# [1-9]\d* wrong elements", printed)
hung = "until the deadline of" in printed
check("a stranger that begins as UCX does ends a rank at most", not wrong and not hung and (aborted or "# 0 wrong elements" in printed), printed)
