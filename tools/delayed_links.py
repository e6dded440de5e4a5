#!/usr/bin/env python3
"""Links whose frames come later than they were sent, for tools/test_hosts.sh: delayed_links.py DELAY_US SWITCH HOST [HOST ...]

SWITCH and HOSTs are network namespaces. Each host gets a device eth0, whose other end is device port0, port1, ... of the switch.
A frame from a host reaches the switch DELAY_US after it was sent; what the switch sends to a host is passed on at once. Writes "ready"
once the devices are there, which vanish when this program ends, as it does with the one that started it. (The kernel's own delay,
netem, is missing on some machines.)"""
import collections
import ctypes
import fcntl
import os
import select
import signal
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
LONGEST_FRAME = 65536
libc = ctypes.CDLL(None, use_errno=True)


def device(namespace, name):
    """The other end of a new device in a namespace, which the calling thread stays in."""
    with open(f"/run/netns/{namespace}") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return end


def go_before_others():
    """Many ranks that wait on few cores would leave this program too little time, and its queues would lose frames."""
    try:
        os.nice(-20)
    except PermissionError:
        pass  # fewer ranks are carried as well


def frames(end):
    while True:
        try:
            yield os.read(end, LONGEST_FRAME)
        except BlockingIOError:
            return


def pass_on(end, frame):
    try:
        os.write(end, frame)
    except OSError:
        pass  # the device is down, or its queue is full: the frame is lost, as on a wire


def main():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    go_before_others()
    delay = int(sys.argv[1]) / 1e6
    switch, hosts = sys.argv[2], sys.argv[3:]
    port_of = {device(host, "eth0"): device(switch, f"port{number}") for number, host in enumerate(hosts)}
    host_of = {port: host for host, port in port_of.items()}
    print("ready", flush=True)
    ends = [*port_of, *host_of]
    under_way = collections.deque()  # (when it arrives, port, frame), in this order since all take as long
    while True:
        wait = max(0, under_way[0][0] - time.monotonic()) if under_way else None
        for end in select.select(ends, [], [], wait)[0]:  # whose time-out is exact to microseconds, unlike epoll's
            if end in host_of:
                for frame in frames(end):
                    pass_on(host_of[end], frame)
            else:
                arrives = time.monotonic() + delay
                under_way.extend((arrives, port_of[end], frame) for frame in frames(end))
        while under_way and under_way[0][0] <= time.monotonic():
            _, port, frame = under_way.popleft()
            pass_on(port, frame)


main()
