#!/usr/bin/env python3
"""Compares what the trainer's models compute with PyTorch: agree_with_torch.py WRITE_AGREEMENT

Loss and gradients of a batch, the losses of ten steps and the parameters after them, and the loss by moving averages.
PyTorch computes in double. Of ResNet-18's many ReLUs, a few have inputs that are 0 to rounding: there a slope passes in one
of the two and not in the other, by which whole gradients differ by some thousandths, PyTorch's own in float, too. Exit code 77 (skipped), with the reason, where PyTorch is missing (Debian: python3-torch).
"""
import json
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


def expect_near(actual, expected, tolerance, what):
    """Relative to the largest value: rounding errors of small ones come from larger ones."""
    error = ((actual - expected).abs().max() / expected.abs().max().clamp(min=1e-12)).item()
    print(f"{what}: {error:.2e} of {tolerance:.0e}")
    if not error <= tolerance:
        sys.exit(f"FAILED: {what}")


def expect_same_move(actual, expected, tolerance, what):
    error = ((actual - expected).norm() / expected.norm()).item()
    print(f"{what}: {error:.2e} of {tolerance:.0e}")
    if not error <= tolerance:
        sys.exit(f"FAILED: {what}")


def agree(program, name, model, tolerance, moves_tolerance):
    model = model.double()
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        subprocess.run([program, name, folder], check=True, timeout=300)
        described = json.loads((folder / "description.json").read_text())
        inputs = read(folder / "inputs.bin").double().view(described["batch"], *model.sample)
        labels = read(folder / "labels.bin", torch.uint8).long()
        with torch.no_grad():
            for tensor, value in parts(read(folder / "parameters.bin"), model):
                tensor.copy_(value)
        losses = []
        for step in range(len(described["losses"])):
            model.zero_grad()
            loss = functional.cross_entropy(model(inputs), labels, reduction="sum")
            loss.backward()
            losses.append(loss.item())
            if step == 0:
                names = [one["name"] for one in described["parameters"]]
                largest = max(t.grad.abs().max() for t, _ in model.tensors())
                for title, (tensor, value) in zip(names, parts(read(folder / "gradients.bin"), model)):
                    if tensor.grad.abs().max() > 1e-5 * largest:  # a bias before a normalisation has none
                        expect_near(value, tensor.grad, tolerance, f"{name}: gradient of {title}")
            with torch.no_grad():
                for tensor, _ in model.tensors():
                    tensor -= described["rate"] / described["batch"] * tensor.grad
        expect_near(torch.tensor(described["losses"]), torch.tensor(losses), tolerance, f"{name}: losses of the steps")
        starts = [value.double() for _, value in parts(read(folder / "parameters.bin"), model)]
        farthest = max((t.detach() - start).norm() for (t, _), start in zip(model.tensors(), starts))
        for title, start, (tensor, value) in zip(names, starts, parts(read(folder / "final.bin"), model)):
            moved = tensor.detach() - start
            if moved.norm() > 1e-4 * farthest:  # a bias before a normalisation stays where it is, to rounding
                expect_same_move(value.double() - start, moved, moves_tolerance, f"{name}: how far {title} has moved")
        model.eval()
        evaluation = functional.cross_entropy(model(inputs), labels, reduction="sum")
        expect_near(torch.tensor(described["evaluation_loss"]), evaluation.detach(), tolerance, f"{name}: loss by moving averages")


agree(sys.argv[1], "lenet", LeNet(), 1e-4, 1e-2)
agree(sys.argv[1], "spirals", Spirals(), 1e-4, 1e-2)
agree(sys.argv[1], "resnet18", ResNet18(), 2e-2, 3e-1)
