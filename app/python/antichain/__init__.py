"""Antichain in Python: models from PyTorch, and plans and simulations for a notebook.

  from_torch(module, example_inputs)     writes a PyTorch model as a folder that the program reads
  profile_torch(module, example_inputs)  measures a PyTorch model with PyTorch: a Profile
  plan(profile, stages=4)                cuts a network into stages: a Plan
  simulate(profile, plan)                predicts a training step: a Simulation
  run("train", graph=…, local=2)         runs a command of the program, and returns what it printed

docs/python.md describes them. PyTorch is needed by the functions that take a module, and by nothing else;
numpy by all but `run`. `plan` and `simulate` run the program `antichain` (program.py). The studies of the
publication are in antichain.experiments. The package lies in app/, beside the program's commands, because it
is a second way to use the program, and may know of every other folder.
"""

from antichain.error import AntichainError
from antichain.program import run

__all__ = [
    "AntichainError",
    "Plan",
    "Profile",
    "Simulation",
    "from_torch",
    "plan",
    "profile_torch",
    "run",
    "simulate",
]


def __getattr__(name):
    """Loads what needs numpy when it is used."""
    if name not in ("Plan", "Profile", "Simulation", "plan", "simulate"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from antichain import objects

    return getattr(objects, name)


def from_torch(
    module, example_inputs, loss="cross_entropy", folder=None, labels=None, auxiliary=0.0, record=True
):
    """Writes a module as a folder NAME.antichain, and returns its path.

    module          a torch.nn.Module; it is taken in training mode, and stays as it is
    example_inputs  one batch of inputs, N x …: their shape is the model's, their numbers are recorded. A
                    tensor; a tuple of what the module takes; or, by keywords, a dictionary of that
    loss            "cross_entropy"; "nll_loss", of a model that ends with a log_softmax; a loss of
                    torch.nn; a function of the model's output and the labels; or a list of these, one for
                    each output, each alone or in a pair with its weight
    folder          where to write [the module's class and ".antichain", in the current folder]
    labels          N classes, or N x K shares of classes [0, 1, 2, …]; or the targets of the loss: a
                    tensor, a list of tensors, or a dictionary of them by their names
    auxiliary       the weight of the loss of each further output; 0 leaves these outputs out
    record          whether to write check.safetensors, which takes a few steps in float64
                    and float32

    Throws AntichainError, in one sentence, where the module computes what Antichain has no operator for.
    """
    from antichain.pytorch.from_torch import write_folder

    return write_folder(module, example_inputs, loss, folder, labels, auxiliary, record)


def profile_torch(
    module,
    example_inputs,
    file=None,
    seconds=10.0,
    device="cpu",
    loss=None,
    link_bytes_per_s=0.0,
    link_latency_s=0.0,
):
    """Measures a module with PyTorch and returns its Profile, which is written to `file` where that is given.

    module            a torch.nn.Module; its first output counts. It is taken in training mode, and stays as
                      it is
    example_inputs    one micro-batch of inputs: a tensor, N x …; or what the module takes, in a tuple or,
                      by keywords, in a dictionary. Tensors have floating-point or whole numbers
    seconds           how long to measure; but each node runs once at least. On a terminal, standard error
                      says how far the measuring is
    device            where PyTorch computes: "cpu", on as many threads as torch.get_num_threads()
                      says, or "cuda"
    loss              a function of that output [the cross-entropy of N x K, else the mean of the squares]
    link_bytes_per_s  bandwidth between two devices, 0: infinite; link_latency_s is its latency

    Every call that the module makes is a node, whether Antichain has such an operator or not. Throws
    AntichainError, in one sentence, where the module can't be recorded or has no gradient.
    """
    from antichain.pytorch.profile_torch import measure_module

    return measure_module(
        module, example_inputs, file, seconds, device, loss, link_bytes_per_s, link_latency_s
    )
