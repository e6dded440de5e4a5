#!/usr/bin/env python3
"""llm.c's trainer, changed as docs/ways_in/llm_c.md says, has the losses that it has with MPI_Allreduce: llm_c.py MPIRUN PAGE
RONDO_LIBRARY_FOLDER. RONDO_TEST_LLM_C names a folder with llm.c's sources; exit code 77 (skipped), with the reason, without."""
import array
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

mpirun, page, library = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
sources = pathlib.Path(os.environ.get("RONDO_TEST_LLM_C", "")) / "train_gpt2.c"
if not os.environ.get("RONDO_TEST_LLM_C") or not sources.exists():
    print("skipped: RONDO_TEST_LLM_C names no folder with llm.c's train_gpt2.c (https://github.com/karpathy/llm.c)")
    sys.exit(77)

# Where the page's lines go, and what stands there if MPI alone is used.
PLACES = [r"int main\(\) {\n", r"    dataloader_init\(&train_loader, [^\n]*\n", r"        gpt2_backward\(&model\);\n"]
BY_MPI = [
    "MPI_Init(NULL, NULL); int rank; MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n",
    "train_loader.current_position = rank * 20000 * sizeof(int);\n",
    "MPI_Allreduce(MPI_IN_PLACE, model.grads_memory, model.num_parameters, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);\n"
    "for (size_t i = 0; i < model.num_parameters; ++i) model.grads_memory[i] *= 0.5f;\n",
]


def changed(header: str, lines: list[str]) -> str:
    text = f"#include <{header}>\n" + sources.read_text(encoding="utf-8")
    for place, line in zip(PLACES, lines, strict=True):
        matches = re.findall(place, text)
        assert len(matches) == 1, f"llm.c has {len(matches)} places for: {line}"
        text = text.replace(matches[0], matches[0] + line)
    return text


def write_model_and_tokens(folder: pathlib.Path) -> None:
    """A small model with random weights, and tokens, in files of llm.c's form."""
    rng = random.Random(1)
    max_tokens, vocabulary, layers, heads, channels = 64, 512, 2, 2, 32
    header = [0] * 256
    header[:8] = [20240326, 3, max_tokens, vocabulary, layers, heads, channels, vocabulary]
    per_layer = [1, 1, 3 * channels, 3, channels, 1, 1, 1, 4 * channels, 4, 4 * channels, 1]
    sizes = [vocabulary * channels, max_tokens * channels] + [layers * channels * one for one in per_layer] + [channels, channels]
    scales_of_norms = (2, 8, 14)
    with open(folder / "gpt2_124M.bin", "wb") as file:
        array.array("i", header).tofile(file)
        for i, size in enumerate(sizes):
            array.array("f", [1.0 if i in scales_of_norms else rng.gauss(0, 0.02) for _ in range(size)]).tofile(file)
    (folder / "data").mkdir()
    for part, count in (("train", 40000), ("val", 3000)):
        tokens = [min(int(rng.paretovariate(0.5)), vocabulary - 1) for _ in range(count)]
        with open(folder / "data" / f"tiny_shakespeare_{part}.bin", "wb") as file:
            array.array("i", tokens).tofile(file)


def losses(folder: pathlib.Path, name: str, text: str, flags: list[str]) -> list[list[str]]:
    """Of each rank, what it prints of its steps, without their times."""
    (folder / f"{name}.c").write_text(text, encoding="utf-8")
    subprocess.run([str(pathlib.Path(mpirun).with_name("mpicc")), "-w", "-O2", f"{name}.c", "-o", name, f"-I{sources.parent.resolve()}", *flags, "-lm"], cwd=folder, check=True)
    environment = {**os.environ, "LD_LIBRARY_PATH": library}
    # Its end of text is no token of this model, so the trainer stops when it is to generate some.
    run = subprocess.run([mpirun, "-n", "2", "--tag-output", f"./{name}"], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    steps = re.findall(r"\[1,(\d)\]<stdout>:\s*(step \d+: train loss [\d.]+|val loss [\d.]+)", run.stdout)
    return [[line for rank, line in steps if int(rank) == r] for r in range(2)]


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    write_model_and_tokens(folder)
    lines = re.findall(r"^```c\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    include = str(page.parents[2] / "include")
    built = str(pathlib.Path(library).parent / "include")
    by_rondo = losses(folder, "by_rondo", changed("rondo/rondo.h", lines), [f"-I{include}", f"-I{built}", f"-L{library}", "-lrondo"])
    by_mpi = losses(folder, "by_mpi", changed("mpi.h", BY_MPI), [])
    print(*by_rondo[0], sep="\n")
    assert len(by_rondo[0]) > 20 and by_rondo[0] != by_rondo[1], "each rank trains on tokens of its own"
    assert by_rondo == by_mpi, f"by MPI: {by_mpi}"
