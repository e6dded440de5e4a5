#!/usr/bin/env python3
"""Checks that every text that docs/errors.md quotes is in a source of the library: errors.py REPOSITORY"""
import pathlib
import re
import sys

repository = pathlib.Path(sys.argv[1])
literals = []
for folder in ("include", "src", "cuda"):
    for path in sorted((repository / folder).rglob("*.[ch]pp")):
        # Literals that follow each other are one.
        source = re.sub(r'"\s*\n\s*"', "", path.read_text())
        literals += re.findall(r'"((?:[^"\\]|\\.)*)"', source)
texts = "\n".join(literals)

page = (repository / "docs" / "errors.md").read_text()
quotes = re.findall(r'"([^"]+)"', page.replace("\n", " "))
missing = [quote for quote in quotes if quote not in texts]
print(f"{len(quotes)} texts are quoted")
for quote in missing:
    print(f"no source has: {quote}")
sys.exit(1 if missing or len(quotes) < 50 else 0)
