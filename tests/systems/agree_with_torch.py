#!/usr/bin/env python3
"""Compares what the trainer's models compute with PyTorch: agree_with_torch.py WRITE_AGREEMENT

Gradients of a batch, the losses of ten steps, how far the parameters move in them, and the loss by moving averages. What
both are compared with is PyTorch in double: the trainer, in float, may be as far from it as PyTorch in float is, with
some room. Of ResNet-18's many ReLUs, a few have inputs that are 0 to rounding: there a slope passes in one of the two and
not in the other, by which whole gradients differ by some thousandths. Exit code 77 (skipped), with the reason, where
PyTorch is missing (Debian: python3-torch).
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-torch)")
    sys.exit(77)

torch.set_num_threads(1)
# Times what PyTorch in float differs by. A loss is one number, whose difference may be small by chance.
ROOM, ROOM_OF_LOSSES = 3, 10
# By kind: what is always allowed, and what never.
BOUNDS = {"gradients": (2e-5, 1e-4), "losses of the steps": (2e-5, 1e-4), "how far parameters have moved": (2e-3, 1e-2), "loss by moving averages": (2e-5, 1e-4)}
BOUNDS_OF_RESNET18 = {"gradients": (1e-2, 2e-2), "losses of the steps": (3e-3, 2e-2), "how far parameters have moved": (0.2, 0.3),
                      "loss by moving averages": (3e-3, 2e-2)}


class LeNet(nn.Module):
    sample = (1, 28, 28)

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 3), nn.Conv2d(20, 50, 5)
        self.dense1, self.dense2 = nn.Linear(800, 128), nn.Linear(128, 10)

    def forward(self, x):
        for conv in (self.conv1, self.conv2):
            x = functional.avg_pool2d(functional.relu(conv(x)), 2)
        return self.dense2(functional.relu(self.dense1(x.flatten(1))))

    def tensors(self):
        """In the trainer's order; the flag: stored input by output."""
        for layer in (self.conv1, self.conv2, self.dense1, self.dense2):
            yield layer.weight, isinstance(layer, nn.Linear)
            yield layer.bias, False


class Unit(nn.Module):
    def __init__(self, inputs, outputs, side, stride):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, side, stride, side // 2)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return self.norm(self.conv(x))

    def tensors(self):
        return [(t, False) for t in (self.conv.weight, self.conv.bias, self.norm.weight, self.norm.bias)]


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.second = Unit(inputs, outputs, 3, stride), Unit(outputs, outputs, 3, 1)
        self.beside = Unit(inputs, outputs, 1, stride) if stride != 1 else None

    def forward(self, x):
        y = self.second(functional.relu(self.first(x)))
        return functional.relu(y + (self.beside(x) if self.beside else x))

    def tensors(self):
        return self.first.tensors() + self.second.tensors() + (self.beside.tensors() if self.beside else [])


class ResNet18(nn.Module):
    sample = (1, 28, 28)

    def __init__(self):
        super().__init__()
        self.stem = Unit(1, 64, 3, 1)
        widths = (64, 128, 256, 512)
        self.blocks = nn.ModuleList()
        for stage, outputs in enumerate(widths):
            self.blocks.append(Block(widths[max(stage - 1, 0)], outputs, 2 if stage else 1))
            self.blocks.append(Block(outputs, outputs, 1))
        self.dense = nn.Linear(512, 10)

    def forward(self, x):
        x = functional.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.dense(x.mean((2, 3)))

    def tensors(self):
        for part in (self.stem, *self.blocks):
            yield from part.tensors()
        yield self.dense.weight, False
        yield self.dense.bias, False


class Spirals(nn.Module):
    sample = (2,)

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 64), nn.Linear(64, 64), nn.Linear(64, 3)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = functional.relu(layer(x))
        return self.layers[-1](x)

    def tensors(self):
        for layer in self.layers:
            yield layer.weight, layer is not self.layers[0]
            yield layer.bias, False


def read(file, kind=torch.float32):
    return torch.frombuffer(bytearray(file.read_bytes()), dtype=kind)


def parts(values, model):
    """The trainer's values, cut and turned as the model has them."""
    at = 0
    for tensor, turned in model.tensors():
        part = values[at:at + tensor.numel()]
        at += tensor.numel()
        yield tensor, part.view(tensor.shape[::-1]).t() if turned else part.view(tensor.shape)
    assert at == values.numel(), (at, values.numel())


def train(model, kind, folder, described):
    """What PyTorch computes in this type: the first step's gradients, the losses of the steps, how far each parameter moves,
    and the loss by moving averages."""
    model = model.to(kind)
    inputs = read(folder / "inputs.bin").to(kind).view(described["batch"], *model.sample)
    labels = read(folder / "labels.bin", torch.uint8).long()
    with torch.no_grad():
        for tensor, value in parts(read(folder / "parameters.bin"), model):
            tensor.copy_(value)
    starts = [tensor.detach().double().clone() for tensor, _ in model.tensors()]
    losses = []
    for step in range(len(described["losses"])):
        model.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels, reduction="sum")
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = [tensor.grad.double().clone() for tensor, _ in model.tensors()]
        with torch.no_grad():
            for tensor, _ in model.tensors():
                tensor -= described["rate"] / described["batch"] * tensor.grad
    moves = [tensor.detach().double() - start for (tensor, _), start in zip(model.tensors(), starts)]
    model.eval()
    evaluation = functional.cross_entropy(model(inputs), labels, reduction="sum")
    return gradients, torch.tensor(losses), moves, evaluation.detach().double()


def of_trainer(model, folder, described):
    """The same by the trainer."""
    read_parts = lambda file: [value.double() for _, value in parts(read(folder / file), model)]  # noqa: E731
    moves = [end - start for end, start in zip(read_parts("final.bin"), read_parts("parameters.bin"))]
    return read_parts("gradients.bin"), torch.tensor(described["losses"]), moves, torch.tensor(described["evaluation_loss"])


def errors(actual, exact, names):
    """The greatest of each kind, and of which parameter. Relative to the greatest value of an array: rounding errors of small ones come from larger ones."""
    def greatest(values, expected):
        return ((values - expected).abs().max() / expected.abs().max()).item()

    def distance(values, expected):
        return ((values - expected).norm() / expected.norm()).item()

    def worst(found):
        return max(found, key=lambda one: math.inf if math.isnan(one[0]) else one[0])

    gradients, losses, moves, evaluation = zip(actual, exact)
    # A bias before a normalisation has no gradient, and stays where it is, to rounding.
    steepest = 1e-5 * max(gradient.abs().max() for gradient in exact[0])
    farthest = 1e-4 * max(move.norm() for move in exact[2])
    return {"gradients": worst((greatest(*pair), name) for name, pair in zip(names, zip(*gradients)) if pair[1].abs().max() > steepest),
            "losses of the steps": (greatest(*losses), "all"),
            "how far parameters have moved": worst((distance(*pair), name) for name, pair in zip(names, zip(*moves)) if pair[1].norm() > farthest),
            "loss by moving averages": (greatest(*evaluation), "all")}


def agree(program, make):
    name = make.__name__.lower()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        subprocess.run([program, name, folder], check=True, timeout=300)
        described = json.loads((folder / "description.json").read_text())
        names = [one["name"] for one in described["parameters"]]
        exact = train(make(), torch.float64, folder, described)
        of_floats = errors(train(make(), torch.float32, folder, described), exact, names)
        for what, (error, where) in errors(of_trainer(make(), folder, described), exact, names).items():
            of_float, _ = of_floats[what]
            print(f"{name}: {what}: {error:.1e} ({where}), PyTorch in float {of_float:.1e}")
            always, never = (BOUNDS_OF_RESNET18 if make is ResNet18 else BOUNDS)[what]
            room = ROOM_OF_LOSSES if "loss" in what else ROOM
            if not error <= min(never, max(always, room * of_float)):
                sys.exit(f"FAILED: {name}: {what}, {where}")


for model in (LeNet, Spirals, ResNet18):
    agree(sys.argv[1], model)
