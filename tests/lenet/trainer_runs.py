"""What the tests of the trainers' command lines share: a few small pictures, and runs of a program on them."""
import gzip
import json
import os
import random
import struct
import subprocess
import sys


def write_pictures(folder, name, count, seed):
    # One bright row, whose height is the class.
    pixels = random.Random(seed)
    labels = bytes(pixels.randrange(10) for _ in range(count))
    images = bytearray()
    for label in labels:
        for row in range(28):
            images += bytes(200 if row == 2 + 2 * label else pixels.randrange(30) for _ in range(28))
    for kind, header, data in (("images-idx3", struct.pack(">IIII", 2051, count, 28, 28), images),
                               ("labels-idx1", struct.pack(">II", 2049, count), labels)):
        with gzip.open(folder / f"{name}-{kind}-ubyte.gz", "wb") as file:
            file.write(header + bytes(data))


class Trainer:
    """A program that trains on the pictures in a folder."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def run(self, *arguments, epochs=2, batch_size=64, lr="0.05"):
        """The exit status, and the history, or else what was printed."""
        command = [self.program, "--data", self.folder, "--epochs", str(epochs), "--batch-size", str(batch_size), "--lr", lr,
                   "--history", self.folder / "history.json", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=100)
        if result.returncode != 0:
            print(result.stdout + result.stderr)
            return result.returncode, result.stdout + result.stderr
        return 0, json.loads((self.folder / "history.json").read_text())

    def refuses(self, arguments, *texts, **others):
        """Whether these arguments end with an error that has one of the texts."""
        code, output = self.run(*arguments, **others)
        expect(code != 0 and any(text in output for text in texts), f"{' '.join(map(str, arguments))} {others or ''} is refused")

    def both_say(self, text, *of_ranks):
        """Whether two ranks with these arguments end with this error."""
        ranks = []
        for rank, arguments in enumerate(of_ranks):
            environment = {**os.environ, "RONDO_RANK": str(rank), "RONDO_SIZE": "2", "RONDO_STORE": f"unix://{self.folder}/socket"}
            ranks.append(subprocess.Popen([self.program, "--epochs", "1", *arguments], env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        outputs = [rank.communicate(timeout=100)[0] for rank in ranks]
        return all(rank.returncode != 0 and text in output for rank, output in zip(ranks, outputs))

    def says_that_files_differ(self, *what):
        """Two ranks, the second with other pictures."""
        others = self.folder / "others"
        others.mkdir(exist_ok=True)
        write_pictures(others, "train", 230, 3)
        write_pictures(others, "t10k", 100, 4)
        return self.both_say("have read different samples", ("--data", self.folder, *what), ("--data", others, *what))

    def goes_on_from_a_checkpoint(self, *what, ranks=2):
        ranks = ("--processes", str(ranks))
        state = self.folder / "checkpoint"
        code, straight = self.run(*ranks, *what, "--checkpoint", self.folder / "straight")
        first, begun = self.run(*ranks, *what, "--checkpoint", state, epochs=1)
        second, ended = self.run(*ranks, *what, "--checkpoint", state)
        expect(code == first == second == 0 and ended["param_hash"] == straight["param_hash"] != begun["param_hash"]
               and ended["epochs"][0]["epoch"] == 2 and ended["epochs"][0]["test_accuracy"] == straight["epochs"][1]["test_accuracy"]
               and (self.folder / "straight").read_bytes() == state.read_bytes(),
               f"training goes on from a checkpoint {what}")
        self.refuses((*ranks, *what, "--seed", "2", "--checkpoint", state), "its seed is 1, and this training's 2")
        # What is done is not done again, and leaves the history as it was.
        self.refuses((*ranks, *what, "--checkpoint", state), "it has 2 epochs already, and --epochs asks for 2")
        expect(not list(self.folder.glob("*.part")), "no part of a file is left")
        self.refuses((*ranks, *what, "--checkpoint", state), "its batch_size is 64, and this training's 16", epochs=3, batch_size=16)
        whole = state.read_bytes()
        for damaged in (whole[:-100], whole[:4000] + bytes([whole[4000] ^ 1]) + whole[4001:], b""):
            state.write_bytes(damaged)
            self.refuses((*ranks, *what, "--checkpoint", state), "training cannot go on from this file", epochs=3)
        state.write_bytes(whole)
        (self.folder / "straight").unlink()
        return state


def expect(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")
    print("ok:", what)
