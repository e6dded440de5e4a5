#!/usr/bin/env python3
"""Programs that come from PyPI, each in one pinned version, and are kept in $XDG_CACHE_HOME/rondo (or ~/.cache/rondo).

usage: tools/from_pypi.py PACKAGE==VERSION [PACKAGE==VERSION ...]

Prints the path of a Python that has these packages.
"""
import hashlib
import os
import pathlib
import subprocess
import sys
import venv

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rondo"


def install(folder, packages):
    """Makes an environment of Python with these packages, if it is missing."""
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *packages], check=True)
        done.touch()


def program(name, version, packages):
    """The path of a program that `packages` bring in this version; they are installed if they are missing."""
    folder = CACHE / f"{name}-{version}"
    install(folder, [f"{package}=={version}" for package in packages])
    found = [path for path in folder.rglob(name) if path.is_file()]
    if not found:
        raise FileNotFoundError(f"PyPI's {', '.join(packages)} in version {version} have no program {name}")
    return min(found, key=lambda path: len(path.parts))


def main():
    packages = sys.argv[1:]
    if not packages or packages[0].startswith("-"):
        sys.exit(__doc__)
    folder = CACHE / ("python-" + hashlib.sha256(" ".join(sorted(packages)).encode()).hexdigest()[:12])
    install(folder, packages)
    print(folder / "bin" / "python")


if __name__ == "__main__":
    main()
