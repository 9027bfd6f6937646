"""Losses of PyTorch and of one's own train as they do in PyTorch, over whole batches."""

import json
import os
import unittest

import h5py
import numpy
import torch
import torch.nn.functional as F
from torch import nn

import antichain
from in_a_folder import InAFolder

SAMPLES, RATE, EPOCHS = 8, 0.1, 4


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.low = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.up, self.head = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, 3, 1)

    def forward(self, x):
        high = torch.relu(self.down(x))
        return self.head(torch.cat([high, self.up(torch.relu(self.low(high)))], 1))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.narrow, self.wide = nn.Linear(12, 4), nn.Linear(4, 12)

    def forward(self, x):
        return self.wide(torch.relu(self.narrow(x)))


class LogProbabilities(Autoencoder):
    def forward(self, x):
        return F.log_softmax(super().forward(x), 1)


class TwoOutputs(Autoencoder):
    def forward(self, x):
        code = self.narrow(x)
        return self.wide(torch.relu(code)), code


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, left, right):
        return F.pairwise_distance(self.net(left), self.net(right))


class TwoHeads(nn.Module):
    """Has an input of whole numbers, which are one where a number counts."""

    def __init__(self):
        super().__init__()
        self.body, self.classes, self.number = nn.Linear(12, 8), nn.Linear(8, 4), nn.Linear(8, 1)

    def forward(self, x, mask):
        code = torch.tanh(self.body(x * mask)) * (mask.sum(1, keepdim=True) > 6).float()
        return self.classes(code), self.number(code).squeeze(1)


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.last(torch.sin(3 * self.second(torch.sin(3 * self.first(x)))))


def own_loss(output, target):
    """Is written with functions of its own, added up with weights."""
    difference = output - target
    return (difference**2).mean() + 0.1 * difference.abs().sum(1).mean() - output.tanh().sum() / 64


def of_two(outputs, target):
    return F.mse_loss(outputs[0], target) + 0.5 * outputs[1].square().mean()


class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.code, self.out = nn.Linear(12, 8), nn.Linear(4, 12)
        self.known = nn.Parameter(torch.zeros(1, 12))

    def forward(self, x, noise):
        mean, log_variance = self.code(x).chunk(2, 1)
        x = self.out(mean + torch.exp(0.5 * log_variance) * noise)
        return x, mean, log_variance, self.known.expand(len(x), -1)


def evidence(outputs, target):
    """Kingma & Welling, "Auto-Encoding Variational Bayes", ICLR 2014; the variance is a parameter."""
    x, mean, log_variance, known = outputs
    off = torch.sum(torch.exp(-known) * (x - target) ** 2 + known)
    return (off - 0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())) / x.shape[0]


def dice(output, classes):
    """Milletari, Navab & Ahmadi, "V-Net: Fully Convolutional Neural Networks for Volumetric Medical Image
    Segmentation", 3DV 2016, of each sample."""
    share, hit = output.softmax(1), F.one_hot(classes, 3).permute(0, 3, 1, 2).float()
    both = (share * hit).flatten(2).sum(2)
    return 1 - ((2 * both + 1) / (share.sum((2, 3)) + hit.sum((2, 3)) + 1)).mean()


def focal(output, classes):
    """Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017; and smoothed labels by hand."""
    off = F.cross_entropy(output, classes, reduction="none")
    log = F.log_softmax(output, dim=-1)
    own = log.gather(1, classes.unsqueeze(1)).squeeze(1)
    return ((1 - torch.exp(-off)) ** 2 * off).mean() - (0.9 * own + 0.1 * log.mean(-1)).mean()


def triplet(outputs, one):
    apart = outputs[0] - outputs[1]
    far = F.triplet_margin_loss(outputs[0], outputs[1], outputs[2] * one)
    ranked = F.margin_ranking_loss(apart[:, 0], apart[:, 1], one[:, 0], margin=0.3)
    return far + 0.1 * ranked + F.cosine_embedding_loss(outputs[0], outputs[2], one[:, 0], margin=0.2)


class Three(Autoencoder):
    def forward(self, a, b, c):
        return tuple(map(super().forward, (a, b, c)))


def of_counts(output, target):
    near = F.binary_cross_entropy(output.sigmoid(), target.clamp(0, 1))
    spread = F.gaussian_nll_loss(output, target, F.softplus(output.flip(1)))
    return near + F.poisson_nll_loss(output, target) + 0.1 * spread


def distilled(output, teacher):
    quantiles = torch.linspace(0.1, 0.9, 12)
    off = teacher - output
    known = (teacher > -1).float()
    kept = ((off**2 * known).sum(1) / known.sum(1)).mean()
    soft = F.kl_div(F.log_softmax(output / 2, 1), F.softmax(teacher / 2, 1), reduction="batchmean")
    return kept + soft * 4 + torch.max((quantiles - 1) * off, quantiles * off).sum(1).mean()


def of_named(outputs, targets):
    return F.cross_entropy(outputs[1], targets["y0"]) + F.l1_loss(outputs[0], targets["y1"])


def contrast(distance, same):
    """Hadsell, Chopra & LeCun, "Dimensionality Reduction by Learning an Invariant Mapping", CVPR 2006."""
    return (same * distance**2 + (1 - same) * F.relu(1 - distance) ** 2).mean()


def drawn(*shape):
    return torch.randn(SAMPLES, *shape)


def masks():
    """Returns labels of pixels of which the samples ignore different numbers, one of them all but one."""
    labels = torch.randint(0, 3, (SAMPLES, 6, 10))
    for i in range(SAMPLES):
        labels[i, : i % 6] = 255
    labels[3] = 255
    labels[3, 0, 0] = 1
    return labels


def weights(count):
    return torch.linspace(0.25, 2, count)


PIXELS = {"ignore_index": 255, "weight": weights(3)}
# A model, its input or its inputs, a loss and its labels.
CASES = {
    "pixels": lambda: (UNet(), drawn(3, 6, 10), nn.CrossEntropyLoss(**PIXELS), masks()),
    "smoothed": lambda: (
        UNet(), drawn(3, 6, 10), nn.CrossEntropyLoss(label_smoothing=0.1, **PIXELS), masks()
    ),
    "sum": lambda: (UNet(), drawn(3, 6, 10), nn.CrossEntropyLoss(ignore_index=255, reduction="sum"), masks()),
    "weights": lambda: (Autoencoder(), drawn(12), nn.CrossEntropyLoss(weights(12)), torch.arange(SAMPLES)),
    "nll": lambda: (LogProbabilities(), drawn(12), nn.NLLLoss(weights(12)), torch.arange(SAMPLES)),
    "kl": lambda: (
        LogProbabilities(),
        drawn(12),
        nn.KLDivLoss(reduction="batchmean"),
        drawn(12).softmax(1),
    ),
    "mse": lambda: (Autoencoder(), drawn(12), nn.MSELoss(), drawn(12)),
    "siren": lambda: (Siren(), drawn(2), nn.MSELoss(), drawn(1)),
    "l1": lambda: (Autoencoder(), drawn(12), nn.L1Loss(reduction="sum"), drawn(12)),
    "huber": lambda: (Autoencoder(), drawn(12), nn.HuberLoss(delta=0.7), drawn(12)),
    "smooth_l1": lambda: (Autoencoder(), drawn(12), nn.SmoothL1Loss(beta=0.5), drawn(12)),
    "bce": lambda: (
        Autoencoder(), drawn(12), nn.BCEWithLogitsLoss(pos_weight=weights(12)), drawn(12).gt(0).float()
    ),
    "own": lambda: (Autoencoder(), drawn(12), own_loss, drawn(12)),
    "two outputs": lambda: (TwoOutputs(), drawn(12), of_two, drawn(12)),
    "evidence": lambda: (Variational(), (drawn(12), drawn(4)), evidence, drawn(12)),
    "dice": lambda: (UNet(), drawn(3, 6, 10), dice, torch.randint(0, 3, (SAMPLES, 6, 10))),
    "focal": lambda: (Autoencoder(), drawn(12), focal, torch.arange(SAMPLES)),
    "triplet": lambda: (
        Three(), (drawn(12), drawn(12), drawn(12)), triplet, (torch.arange(SAMPLES)[:, None] % 2) * 2.0 - 1
    ),
    "counts": lambda: (Autoencoder(), drawn(12), of_counts, torch.randint(0, 3, (SAMPLES, 12)).float()),
    "distilled": lambda: (Autoencoder(), drawn(12), distilled, drawn(12)),
    "named": lambda: (
        TwoOutputs(), drawn(12), of_named, {"y0": torch.arange(SAMPLES) % 4, "y1": drawn(12)}
    ),
    "two losses": lambda: (
        TwoOutputs(),
        drawn(12),
        [nn.MSELoss(), (nn.CrossEntropyLoss(), 0.3)],
        [drawn(12), torch.arange(SAMPLES) % 4],
    ),
    "two inputs": lambda: (Siamese(), (drawn(12), drawn(12)), contrast, torch.arange(SAMPLES) % 2),
    "two heads": lambda: (
        TwoHeads(),
        (drawn(12), torch.randint(0, 2, (SAMPLES, 12))),
        [nn.CrossEntropyLoss(), (nn.MSELoss(), 0.5)],
        [torch.arange(SAMPLES) % 4, drawn()],
    ),
}


def tuple_of(inputs):
    return inputs if isinstance(inputs, tuple) else (inputs,)


def every(labels):
    labels = [*labels.values()] if isinstance(labels, dict) else labels
    return labels if isinstance(labels, list) else [labels]


def first(of):
    """Returns the first samples: what a network is read on says nothing of how many it is trained on."""
    if isinstance(of, torch.Tensor):
        return of[: SAMPLES - 2]
    return {name: first(x) for name, x in of.items()} if isinstance(of, dict) else type(of)(map(first, of))


def in_pytorch(model, inputs, loss, labels):
    """Returns the losses of some steps of SGD on the whole batch, in float64."""
    pairs = [l if isinstance(l, tuple) else (l, 1) for l in loss] if isinstance(loss, list) else [(loss, 1)]
    pairs = [(l.double() if isinstance(l, nn.Module) else l, weight) for l, weight in pairs]
    model = model.double()
    names = [*labels] if isinstance(labels, dict) else None
    labels, inputs = (
        [y.double() if y.is_floating_point() else y for y in of]
        for of in (every(labels), tuple_of(inputs))
    )
    labels = [dict(zip(names, labels))] if names else labels
    optimiser = torch.optim.SGD(model.parameters(), RATE)
    losses = []
    for _ in range(EPOCHS):
        output = model(*inputs)
        outputs = output if len(pairs) > 1 else [output]
        value = sum(weight * l(o, y) for (l, weight), o, y in zip(pairs, outputs, labels))
        losses.append(value.item())
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    return losses


class Sloped(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(1))

    def forward(self, output, target):
        return (self.slope * (output - target) ** 2).mean()


class Losses(InAFolder):
    def write(self, name):
        """Writes the network and its data, and returns what PyTorch computes with."""
        torch.manual_seed(1)
        model, inputs, loss, labels = CASES[name]()
        self.net, self.data = str(self.folder / "net.antichain"), str(self.folder / "set.h5")
        antichain.from_torch(model, first(inputs), loss, self.net, first(labels))
        targets = every(labels)
        with h5py.File(self.data, "w") as file:
            for split in "train", "test":
                for i, x in enumerate(tuple_of(inputs)):
                    file[f"{split}/x{i}"] = x.numpy()
                for i, y in enumerate(targets):
                    file[f"{split}/y{i}"] = y.numpy()
        self.inputs = ",".join(f"x{i}" for i in range(len(tuple_of(inputs))))
        self.targets = ",".join(f"y{i}" for i in range(len(targets)))
        return model, inputs, loss, labels

    def train(self, *more, local=1):
        """Returns the losses of the steps, and what --json says of the run."""
        metrics, results = str(self.folder / "metrics"), str(self.folder / "json")
        antichain.run(
            "train", *"--momentum 0 --weight-decay 0 --lr-schedule constant --warmup-steps 0".split(), *more,
            graph=self.net, dataset=f"hdf5:{self.data}", inputs=self.inputs, targets=self.targets,
            batch=SAMPLES, microbatches=4, epochs=EPOCHS, lr=RATE, local=local, metrics=metrics, json=results,
        )
        with open(metrics) as lines:
            steps = [json.loads(line) for line in lines]
        with open(results) as file:
            return [step["loss"] for step in steps if "step" in step and "rate" in step], json.load(file)

    def test_they_train_as_in_pytorch(self):
        for name in CASES:
            with self.subTest(name):
                right = in_pytorch(*self.write(name))
                antichain.run("check", graph=self.net)
                losses, one = self.train()
                # Float32 rounds at 6e-8, and some thousand numbers are added up.
                numpy.testing.assert_allclose(losses, right, 1e-5, 1e-6)

    def test_on_two_stages_they_have_the_same_bits(self):
        for name in ("pixels", "two losses", "siren", "two inputs", "two heads"):
            with self.subTest(name):
                self.write(name)
                one, two = self.train(), self.train(local=2)
                self.assertEqual((one[0], one[1]["state"]), (two[0], two[1]["state"]))

    def test_replicas_divide_by_what_all_of_them_count(self):
        for name in ("smoothed", "weights", "sum"):
            with self.subTest(name):
                right = in_pytorch(*self.write(name))
                losses, _ = self.train("--replicas", "2", local=2)
                numpy.testing.assert_allclose(losses, right, 1e-5)

    def evaluated(self, local=1, weights=None):
        """Returns what --json says of an evaluation, with the first weights where no others are given."""
        results, weights = str(self.folder / "evaluation"), weights or self.net + "/weights.safetensors"
        antichain.run(
            "evaluate", graph=self.net, weights=weights, batch=3, json=results,
            dataset=f"hdf5:{self.data}", inputs=self.inputs, targets=self.targets, local=local,
        )
        with open(results) as file:
            return json.load(file)

    def test_an_evaluation_is_a_mean_over_the_test_set(self):
        model, images, loss, labels = self.write("pixels")
        self.train("--results", str(self.folder / "run"))
        said = self.evaluated()
        output = model(images)
        self.assertAlmostEqual(said["loss"], loss(output, labels).item(), 5)
        found, labels = output.argmax(1)[labels != 255], labels[labels != 255]
        self.assertAlmostEqual(said["accuracy"], (found == labels).float().mean().item(), 5)
        both = [((found == k) & (labels == k)).sum() / ((found == k) | (labels == k)).sum() for k in range(3)]
        self.assertAlmostEqual(said["mean_iou"], torch.stack(both).mean().item(), 6)
        self.assertEqual(said, self.evaluated(local=2))

    def test_an_evaluation_says_how_far_numbers_are_from_their_targets(self):
        for name in ("mse", "huber", "siren"):
            with self.subTest(name):
                model, x, _, y = self.write(name)
                said, off = self.evaluated(), model(x) - y
                self.assertAlmostEqual(said["mean_absolute_error"], off.abs().mean().item(), 6)
                self.assertAlmostEqual(said["mean_squared_error"], off.square().mean().item(), 6)
        self.write("bce")  # of logits, which are no such numbers
        self.assertNotIn("mean_absolute_error", self.evaluated())

    def test_each_epoch_of_training_says_so_too(self):
        for name in ("pixels", "mse"):
            self.write(name)
            runs = [str(self.folder / f"{name}{local}") for local in (1, 2)]
            said = [self.train("--results", run, local=i + 1)[1] for i, run in enumerate(runs)]
            right = self.evaluated(weights=f"{runs[0]}/weights.h5")
            keys = [key for key in right if key.startswith("mean_")]
            self.assertTrue(keys)
            for key in keys:
                with self.subTest(name, key=key):
                    self.assertAlmostEqual(said[0][f"final_test_{key}"], right[key], 6)
                    self.assertEqual(said[0][f"final_test_{key}"], said[1][f"final_test_{key}"])
            with open(f"{runs[1]}/metrics.jsonl") as lines:
                of_epochs = [line for line in map(json.loads, lines) if "test_loss" in line]
            self.assertEqual(len(of_epochs), EPOCHS)
            self.assertEqual(of_epochs[-1][f"test_{keys[0]}"], said[1][f"final_test_{keys[0]}"])

    def test_what_is_refused(self):
        torch.manual_seed(1)
        model, images, target = Autoencoder(), drawn(12), drawn(12)
        for sentence, loss, labels in (
            ("something else on 16 samples than on 8: it has 8 and then 16 times the mean of a formula_loss",
             lambda o, y: ((o - y) ** 2).mean() * len(o), target),
            ("samples that see each other", lambda o, y: (o @ o.T).mean() + y.mean(), target),
            ("the loss has parameters \\(slope\\)", Sloped(), target),
            ("this loss needs labels", nn.MSELoss(), None),
            ("the loss 3 is not supported", 3, target),
            ("log_softmax", nn.NLLLoss(), torch.arange(SAMPLES)),
            ("one number for the batch", lambda o, y: (o - y) ** 2, target),
            ("does not use labels", lambda o, y: o.mean(), target),
            ("does not use what the model", lambda o, y: y.mean(), target),
            ("but there are 8 samples", nn.MSELoss(), target[:3]),
            ("a sum over the samples", lambda o, y: ((o - y) ** 2).mean(0).max(), target),
            ("that is summed up", lambda o, y: ((o - y) ** 2).mean().sqrt(), target),
        ):
            with self.subTest(sentence), self.assertRaisesRegex(antichain.AntichainError, sentence):
                antichain.from_torch(model, images, loss, str(self.folder / "no.antichain"), labels)


if __name__ == "__main__":
    unittest.main()
