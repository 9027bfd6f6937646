"""python3 -m antichain.pytorch weights IN.pt OUT.safetensors."""

from antichain.command import start

start("antichain.pytorch.saved", ("numpy", "torch"), "files of torch.save are read")
