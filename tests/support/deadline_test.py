#!/usr/bin/env python3
"""What deadline.py does with a test that ends, and with one that does not: deadline_test.py DEADLINE.PY"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

deadline = sys.argv[1]


def run(command, timeout):
    with tempfile.TemporaryDirectory() as folder:
        info = pathlib.Path(folder) / "meson-info"
        info.mkdir()
        (info / "intro-tests.json").write_text(json.dumps([{"cmd": ["another"], "timeout": 1000}, {"cmd": command, "timeout": timeout}]))
        done = subprocess.run([sys.executable, deadline, folder, *command], capture_output=True, text=True,
                              env={**os.environ, "RONDO_TEST_SLOWNESS": "1"})
        return done.returncode, done.stdout + done.stderr


for code in (0, 1, 77):
    assert run(["sh", "-c", f"exit {code}"], 1000) == (code, ""), code
assert run(["sh", "-c", "kill -9 $$"], 1000)[0] == 137

# Two processes wait for ever, one of them in a session of its own.
with tempfile.TemporaryDirectory() as folder:
    code, text = run(["sh", "-c", f"setsid sleep 1000 & echo $! >{folder}/child; sleep 1000 & wait"], 5)
    child = int(pathlib.Path(folder, "child").read_text())
assert code == 1, text
assert "has not ended after 5 s" in text and text.count("sleep 1000") >= 2, text
# A process that starts others without end, also while the stacks are shown. What is left of it would keep the output open.
code, text = run(["sh", "-c", "while :; do sleep 1000 & sleep 0.01; done"], 1)
assert code == 1 and "has not ended after 1 s" in text, text
own_child = subprocess.Popen(["sleep", "1000"])
may_look = shutil.which("eu-stack") and subprocess.run(["eu-stack", "-p", str(own_child.pid)], capture_output=True).returncode == 0
own_child.kill()
if not may_look:
    print("not run: whether stacks are shown, since eu-stack is missing or may not look at processes here")
else:
    assert text.count("#0") >= 3, text
assert not pathlib.Path(f"/proc/{child}").exists() or "State:\tZ" in pathlib.Path(f"/proc/{child}/status").read_text(), "the child still runs"
