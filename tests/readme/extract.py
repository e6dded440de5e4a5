#!/usr/bin/env python3
"""Prints an example of a Markdown file: extract.py FILE [NUMBER [LANGUAGE]], the first block marked ```cpp, or that with the given
number, from 0 on, or of another language."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
number = int(sys.argv[2]) if len(sys.argv) > 2 else 0
language = sys.argv[3] if len(sys.argv) > 3 else "cpp"
found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
if len(found) <= number:
    sys.exit(f"{sys.argv[1]} has no {language} example {number}")
print(found[number], end="")
