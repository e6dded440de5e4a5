"""Builds the extension, and Rondo in it. Needs the torch that it will be used with: pip install --no-build-isolation."""
import os
import pathlib
import shlex
import subprocess

from setuptools import setup
from torch.utils import cpp_extension

HERE = pathlib.Path(__file__).resolve().parent
RONDO = HERE.parents[2]


def asked_of_pkg_config(path, *flags):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(path))
    return shlex.split(subprocess.run(["pkg-config", *flags, "rondo"], env=environment, check=True, capture_output=True, text=True).stdout)


def installed_rondo():
    """What the compiler and the linker are told about Rondo: about an installed one, if RONDO_TORCH_PKG_CONFIG names the
    folder of its rondo.pc, else about a static library that is made here, without MPI and CUDA."""
    installed = os.environ.get("RONDO_TORCH_PKG_CONFIG")
    if installed:
        link_args = asked_of_pkg_config(installed, "--libs")
        folders = [arg[2:] for arg in link_args if arg.startswith("-L")]
        return asked_of_pkg_config(installed, "--cflags"), [*link_args, *(f"-Wl,-rpath,{folder}" for folder in folders)]
    build = pathlib.Path(os.environ.get("RONDO_TORCH_BUILD", HERE / "build")).resolve()
    prefix = build / "rondo"
    options = ["mpi", "cuda", "tests", "benchmarks", "examples"]
    if not (build / "meson" / "build.ninja").exists():
        subprocess.run(["meson", "setup", build / "meson", RONDO, "--buildtype=release", f"--prefix={prefix}", "--libdir=lib",
                        *(f"-D{option}=disabled" for option in options)], check=True)
    subprocess.run(["meson", "install", "-C", build / "meson", "--quiet"], check=True)
    path = prefix / "lib" / "pkgconfig"
    link_args = ["-l:librondo.a" if arg == "-lrondo" else arg for arg in asked_of_pkg_config(path, "--static", "--libs")]
    return asked_of_pkg_config(path, "--cflags"), link_args


compile_args, link_args = installed_rondo()
sources = ["allocator.cpp", "backend.cpp", "joining.cpp", "module.cpp", "runner.cpp", "tensors.cpp"]
setup(
    ext_modules=[
        cpp_extension.CppExtension(
            "rondo_torch._C", sources, extra_compile_args=["-std=c++20", "-O2", "-fvisibility=hidden", f"-I{HERE.parents[1]}", *compile_args],
            extra_link_args=[*link_args, "-Wl,--exclude-libs,ALL"])
    ],
    cmdclass={"build_ext": cpp_extension.BuildExtension},
    # What the folder holds may be of another torch, or of an earlier Rondo, which setuptools does not look at.
    options={"build_ext": {"force": True}},
)
