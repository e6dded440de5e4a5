#!/usr/bin/env python3
"""The trainer that others read first stays small: size.py SOURCES RONDO_LENET"""
import pathlib
import re
import subprocess
import sys

MOST_LINES, MOST_OPTIONS, SCREEN = 1500, 16, 50

folder = pathlib.Path(sys.argv[1]) / "examples/lenet"
lines = sum(len(file.read_text().splitlines()) for file in folder.rglob("*") if file.is_file())
text = subprocess.run([sys.argv[2], "--help"], capture_output=True, text=True, check=True).stdout
options = [option for option in re.findall(r"^ +(?:-\w,)?(--[\w-]+)", text, re.MULTILINE) if option not in ("--help", "--version")]
print(f"examples/lenet has {lines} lines; rondo-lenet has {len(options)} options, and --help {len(text.splitlines())} lines")
if lines > MOST_LINES or len(options) > MOST_OPTIONS or len(text.splitlines()) > SCREEN:
    sys.exit(f"at most {MOST_LINES} lines, {MOST_OPTIONS} options and {SCREEN} lines of help are meant to be there")
