#!/usr/bin/env python3
"""Says what tests were not run and why, and with --count how many passed, failed and were skipped.

usage: tools/test_results.py [--count] TESTLOG.json...

A test that GoogleTest skips inside a program counts as skipped; the program itself counts as passed. So does a script of which a
part was not run: it has said so in a line that begins with "not run:" or "left out:".
"""
import json
import re
import sys

logs = [name for name in sys.argv[1:] if name != "--count"]
results = [json.loads(line) for log in logs for line in open(log)]
inside = 0
for test in results:
    output = re.sub(r"\x1b\[[0-9;]*m", "", test.get("stdout", ""))
    if test["result"] == "SKIP":
        # Some have printed more than the reason.
        print(f"not run: {test['name']}: {output[max(output.find('skipped: '), 0):].strip()}")
        continue
    for name, text in re.findall(r"\[ RUN      \] (\S+)\n((?:(?!\[ RUN ).*\n)*?)\[  SKIPPED \] \1", output):
        reason = " ".join(line for line in text.splitlines() if line and not line.endswith(": Skipped") and line != "Skipped")
        print(f"not run: {test['name']}, {name}: {reason}")
        inside += 1
    for what in re.findall(r"^(?:not run|left out): (.*)$", output, re.MULTILINE):
        print(f"not run: {test['name']}: {what}")
        inside += 1
if "--count" in sys.argv:
    good = sum(test["result"] == "OK" for test in results)
    skipped = sum(test["result"] == "SKIP" for test in results)
    print(f"{good} passed, {len(results) - good - skipped} failed, {skipped + inside} skipped")
