"""Builds the extension, and Rondo in it. Needs the torch that it will be used with: pip install --no-build-isolation."""
import os
import pathlib
import shlex
import subprocess

from setuptools import setup
from torch.utils import cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
RONDO = HERE.parents[2]


def installed_rondo():
    """Rondo's static library, without MPI and CUDA, in a folder of this build; its pkg-config arguments."""
    build = pathlib.Path(os.environ.get("RONDO_TORCH_BUILD", HERE / "build")).resolve()
    prefix = build / "rondo"
    options = ["mpi", "cuda", "tests", "benchmarks", "examples"]
    if not (build / "meson" / "build.ninja").exists():
        subprocess.run(["meson", "setup", build / "meson", RONDO, "--buildtype=release", f"--prefix={prefix}", "--libdir=lib",
                        *(f"-D{option}=disabled" for option in options)], check=True)
    subprocess.run(["meson", "install", "-C", build / "meson", "--quiet"], check=True)
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib" / "pkgconfig"))
    asked = [subprocess.run(["pkg-config", *flags, "rondo"], env=environment, check=True, capture_output=True, text=True).stdout
             for flags in (["--cflags"], ["--static", "--libs"])]
    compile_args, link_args = (shlex.split(text) for text in asked)
    return compile_args, ["-l:librondo.a" if arg == "-lrondo" else arg for arg in link_args]


compile_args, link_args = installed_rondo()
sources = ["allocator.cpp", "backend.cpp", "joining.cpp", "module.cpp", "runner.cpp"]
setup(
    ext_modules=[
        cpp_extension.CppExtension(
            "rondo_torch._C", sources, extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden", *compile_args],
            extra_link_args=[*link_args, "-Wl,--exclude-libs,ALL"])
    ],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
)
