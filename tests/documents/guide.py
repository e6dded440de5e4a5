#!/usr/bin/env python3
"""Follows the pages of the guide: guide.py BUILD SOURCES.

Rondo is installed from the build into an empty folder, where programs are compiled and run as a page says. What needs a program of others, or
another test does already, is named below with the reason. A block that is not named here fails the test.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

build, sources = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
REPLACED = [  # in commands: what this test has in the place of what a reader has
    (r"^tools/install\.sh.*$", ":"),  # done already
    # Smaller, to take less time.
    (r"-b 1KiB -e 64KiB", "-b 4KiB -e 4KiB -n 2 -w 1"),
    (r"(rondo-overlap --ranks 2)", r"\1 -n 1 --compute-ms 2"),
    (r",131072", ""),
]

# A fragment is compiled within a function that has what the page says before it.
FRAGMENTS = {
    "reducer": """#include <rondo/rondo.hpp>
struct Batch {};
std::vector<Batch> batches;
template <class Mark> void backward(const Batch&, const Mark& mark) { mark(2); mark(1); mark(0); }
void update() {}
void example(rondo::Communicator& comm, std::vector<float>& w1, std::vector<float>& b1, std::vector<float>& w2,
             std::vector<float>& w1_slopes, std::vector<float>& b1_slopes, std::vector<float>& w2_slopes) {
@
}
""",
    "devices": """#include <rondo/cuda.hpp>
#include <rondo/rondo.hpp>
void example(rondo::cuda::Communicator& gpus, std::size_t count, rondo::cuda::Stream stream) {
@
}
""",
    "joined devices": """#include <rondo/rondo.hpp>
@0
void example(std::size_t count, rondo::cuda::Stream stream) {
@
}
""",
    "llm.c": """#include <rondo/rondo.h>
#include <stdio.h>
static struct { int current_position; } train_loader;
static struct { float* grads_memory; size_t num_parameters; } model;
int example(rondo_comm* ranks);
int example(rondo_comm* ranks) {
@
  return 0;
}
""",
    "beginning of llm.c": """#include <rondo/rondo.h>
#include <stdio.h>
int example(void);
int example(void) {
@
  return rondo_rank(ranks);
}
""",
}

PAGES = {
    "README.md": [("elsewhere", "they are this project's two commands"), ("elsewhere", "test readme_example"), ("elsewhere", "test install"), ("drawing",),
                  ("elsewhere", "test install"), ("drawing",), ("fragment", "reducer")],
    "docs/first_sum.md": [("commands",), ("program", "sum.cpp"), ("commands",), ("output",), ("run", "average.cpp", "has the average 2"),
                          ("run", "step.cpp", "has the bias 0.999")],
    "docs/concepts.md": [("commands",)],
    "docs/starting.md": [("elsewhere", "test starting")] * 5,
    "docs/tuning.md": [("commands",)] * 4,
    "docs/gradients.md": [("fragment", "reducer"), ("drawing",)],
    "docs/gpu.md": [("fragment", "joined devices"), ("fragment", "devices")],
    "docs/trainer.md": [("elsewhere", "test documents")] * 2,
    "docs/documents.md": [("elsewhere", "test documents")] * 24,
    "docs/scaling.md": [("commands",), ("elsewhere", "it needs two hosts")],
    "docs/ring.md": [("drawing",)],
    "docs/architecture.md": [("drawing",)],
    "docs/ways_in/linking.md": [("elsewhere", "test cmake")] * 2,
    "docs/ways_in/c.md": [("program", "program.c"), ("commands",)],
    "docs/ways_in/mpi.md": [("mpi program",), ("commands",)],
    "docs/ways_in/pytorch.md": [("elsewhere", "test ways_in_torch")] * 2,
    "docs/ways_in/nccl.md": [("elsewhere", "it needs a GPU; test ways_in_nccl")],
    "docs/ways_in/libtorch.md": [("elsewhere", "test ways_in_libtorch")],
    "docs/ways_in/lightgbm.md": [("elsewhere", "test ways_in_lightgbm")],
    "docs/ways_in/llm_c.md": [("fragment", "beginning of llm.c"), ("fragment", "llm.c"), ("fragment", "llm.c"), ("elsewhere", "it needs llm.c")],
    "docs/ways_in/mlx.md": [("elsewhere", "it needs MLX")],
}


class Reader:
    """Somebody who follows a page, in a folder of his own."""

    def __init__(self, folder, installed):
        self.folder = folder
        self.output = ""
        library = next(installed.rglob("librondo.so")).parent
        folder.mkdir()
        (folder / "build").symlink_to(build)
        (folder / "examples").symlink_to(sources / "examples")
        self.environment = dict(
            os.environ, PKG_CONFIG_PATH=str(library / "pkgconfig"), LD_LIBRARY_PATH=str(library), OMPI_ALLOW_RUN_AS_ROOT="1",
            OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1", PRTE_MCA_rmaps_default_mapping_policy=":oversubscribe",
            PATH=f"{next(installed.rglob('rondo-launch')).parent}:{os.environ['PATH']}")

    def shell(self, command):
        begin = time.monotonic()
        done = subprocess.run(["bash", "-euc", command], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=300)
        print(f"{time.monotonic() - begin:5.1f} s: {command.splitlines()[-1][:100]}", flush=True)
        self.output = done.stdout
        if done.returncode != 0:
            raise AssertionError(f"exit code {done.returncode} of: {command}\n{done.stdout}")

    def commands(self, text):
        for pattern, new in REPLACED:
            text = re.sub(pattern, new, text, flags=re.MULTILINE)
        self.shell(text)

    def program(self, text, name):
        (self.folder / name).write_text(text, encoding="utf-8")

    def run(self, text, name, expected):
        self.program(text, name)
        self.shell(f"g++ -std=c++20 -Wall -Wextra -Werror {name} -o run $(pkg-config --cflags --libs rondo) && rondo-launch -n 3 ./run")
        expected = [f"[{rank}] rank {rank} of 3 {expected}" for rank in range(3)]
        assert all(line in self.output for line in expected), self.output

    def output_is(self, text):
        assert sorted(self.output.splitlines()) == sorted(text.splitlines()), self.output

    def mpi_program(self):
        self.shell(f"mpicc {sources}/tests/ways_in/their_program.c -o their_program")

    def fragment(self, text, language, name):
        includes = "".join(re.findall(r"^#include.*\n", text, re.MULTILINE))
        text = FRAGMENTS[name].replace("@0", includes).replace("@", re.sub(r"^#include.*\n", "", text, flags=re.MULTILINE))
        file = "fragment." + language
        self.program(text, file)
        compiler = "gcc -std=c11" if language == "c" else "g++ -std=c++20"
        self.shell(f"{compiler} -Wall -Wextra -Wno-unused -c {file} -o fragment.o $(pkg-config --cflags rondo)")


def follow(page, steps, folder, installed):
    text = (sources / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    with_blocks = [step for step in steps if step[0] != "mpi program"]
    assert len(blocks) == len(with_blocks), f"{page} has {len(blocks)} blocks, and this test knows {len(with_blocks)}"
    reader = Reader(folder, installed)
    blocks = iter(blocks)
    for what, *arguments in steps:
        if what == "mpi program":
            reader.mpi_program()
            continue
        language, block = next(blocks)
        if what == "elsewhere":
            print(f"not run: a block of {page}: {arguments[0]}")
        elif what == "commands":
            reader.commands(block)
        elif what == "program":
            reader.program(block, *arguments)
        elif what == "run":
            reader.run(block, *arguments)
        elif what == "output":
            reader.output_is(block)
        elif what == "fragment":
            reader.fragment(block, language, *arguments)
        else:
            assert what == "drawing", what
    print(f"ok: {page}")


def main():
    pages = [str(page.relative_to(sources)) for page in (*sources.glob("docs/*.md"), *sources.glob("docs/ways_in/*.md"))
             if "```" in page.read_text(encoding="utf-8")]
    assert not set(pages) - set(PAGES), f"pages that this test does not know: {set(pages) - set(PAGES)}"
    with tempfile.TemporaryDirectory() as folder:
        installed = pathlib.Path(folder) / "installed"
        subprocess.run(["meson", "install", "-C", build, "--destdir", installed, "--no-rebuild", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        for number, (page, steps) in enumerate(PAGES.items()):
            follow(page, steps, pathlib.Path(folder) / f"reader{number}", installed)


main()
