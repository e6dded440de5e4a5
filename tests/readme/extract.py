#!/usr/bin/env python3
"""Prints the C++ example of a Markdown file: the first block marked ```cpp."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
found = re.search(r"^```cpp\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
if not found:
    sys.exit(f"{sys.argv[1]} has no C++ example")
print(found.group(1), end="")
