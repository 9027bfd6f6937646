"""python3 -m antichain.tokens --text FILE … --tokenizer tokenizer.json --out SET."""

from antichain.command import start

start("antichain.tokens.packing", ("h5py", "numpy", "tokenizers"), "text is cut into tokens")
