"""python3 -m antichain.generate --tokenizer tokenizer.json --prompt TEXT --weights FILE …."""

from antichain.command import start

start("antichain.tokens.generating", ("tokenizers",), "text is cut into tokens")
