#!/usr/bin/env python3
"""Prints a C++ example of a Markdown file: the first block marked ```cpp, or that with the given number, from 0 on."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
found = re.findall(r"^```cpp\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
if len(found) <= number:
    sys.exit(f"{sys.argv[1]} has no C++ example {number}")
print(found[number], end="")
