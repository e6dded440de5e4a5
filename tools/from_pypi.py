"""Programs that come from PyPI, each in one pinned version, and are kept in $XDG_CACHE_HOME/rondo (or ~/.cache/rondo)."""
import os
import pathlib
import subprocess
import venv

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "rondo"


def program(name, version, packages):
    """The path of a program that `packages` bring in this version; they are installed if they are missing."""
    folder = CACHE / f"{name}-{version}"
    done = folder / "installed"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *(f"{package}=={version}" for package in packages)], check=True)
        done.touch()
    found = [path for path in folder.rglob(name) if path.is_file()]
    if not found:
        raise FileNotFoundError(f"PyPI's {', '.join(packages)} in version {version} have no program {name}")
    return min(found, key=lambda path: len(path.parts))
