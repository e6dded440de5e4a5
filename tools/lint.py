#!/usr/bin/env python3
"""The format check, then clang-tidy on the files that a build folder compiles: tools/lint.py BUILD_FOLDER

A file that clang-tidy has passed is not read again until the file, a header of the project that it includes, its
compile command, .clang-tidy or clang-tidy itself changes: what has passed is noted in $XDG_CACHE_HOME/rondo (or
~/.cache/rondo). Headers of the system don't count: --no-cache reads everything, after these have changed.

clang-tidy comes from PyPI, as one pinned version: Debian's takes three times as long, since up to version 20 it also
looks for faults in the headers of the system.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import from_pypi

VERSION = "23.1.4"
ROOT = pathlib.Path(__file__).resolve().parent.parent
# Highway includes this file into itself, once for each processor, which clang-tidy cannot follow.
NOT_READ = {ROOT / "src/reduce/vector.cpp"}
INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]([^">]+)[">]', re.MULTILINE)


class Sources:
    """What a file of the project is made of: its own text and that of all headers of the project that it includes."""

    def __init__(self):
        self.read = {}

    def includes(self, path, folders):
        """The digest of a file, and the headers of the project that it includes where `folders` are searched."""
        if path not in self.read:
            text = path.read_bytes()
            self.read[path] = hashlib.sha256(text).digest(), INCLUDE.findall(text)
        digest, names = self.read[path]
        found = {next((p for p in (folder / name.decode() for folder in [path.parent, *folders]) if p.is_file()), None) for name in names}
        return digest, {p.resolve() for p in found if p is not None}

    def digest(self, path, folders):
        seen, left = {}, [path]
        while left:
            one = left.pop()
            if one in seen:
                continue
            seen[one], further = self.includes(one, folders)
            left += further
        return b"".join(text for _, text in sorted(seen.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--no-cache", action="store_true", help="read everything, whatever has passed before")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()

    files = subprocess.run(["git", "ls-files", "-z", "*.hpp", "*.cpp"], cwd=ROOT, check=True, capture_output=True).stdout
    names = [name.decode() for name in files.split(b"\0") if name]
    subprocess.run(["clang-format-19", "--dry-run", "--Werror", *names], cwd=ROOT, check=True)

    commands = {}
    for entry in json.loads((folder / "compile_commands.json").read_text()):
        path = (pathlib.Path(entry["directory"]) / entry["file"]).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(folder) and path.suffix == ".cpp":
            # Some files are compiled several times.
            words = [word.replace(str(folder), ".").replace(str(ROOT), "..") for word in shlex.split(entry["command"])]
            commands.setdefault(path, []).append(words)
    program = from_pypi.program("clang-tidy", VERSION, ["clang-tidy"])
    sources = Sources()
    passed_folder = from_pypi.CACHE / "tidy"
    passed_folder.mkdir(parents=True, exist_ok=True)
    # OpenMP's header is among those of a compiler, and this clang-tidy comes without.
    openmp = subprocess.run(["clang-19", "-print-resource-dir"], check=True, capture_output=True, text=True).stdout.strip()
    common = VERSION.encode() + (ROOT / ".clang-tidy").read_bytes()

    def folders_of(words):
        named = [word[2:] for word in words if word.startswith("-I")]
        named += [following for word, following in zip(words, words[1:]) if word == "-isystem"]
        return [one for one in ((folder / name).resolve() for name in named) if one.is_relative_to(ROOT)]

    def check(path):
        parts = [common]
        for words in commands[path]:
            parts += [" ".join(words).encode(), sources.digest(path, folders_of(words))]
        key = hashlib.sha256(b"".join(parts)).hexdigest()
        if (passed_folder / key).exists() and not arguments.no_cache:
            return None, ""
        run = subprocess.run([program, "--quiet", f"--extra-arg=-idirafter{openmp}/include", "-p", folder, path], capture_output=True, text=True)
        if run.returncode == 0:
            (passed_folder / key).touch()
        return run.returncode == 0, run.stdout + (run.stderr if run.returncode != 0 else "")

    paths = sorted(path for path in commands if path not in NOT_READ)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(check, paths))
    for good, output in results:
        if good is False:
            print(output)
    failed = sum(good is False for good, _ in results)
    known = sum(good is None for good, _ in results)
    print(f"clang-tidy: {len(paths)} files, {known} of them passed before, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
