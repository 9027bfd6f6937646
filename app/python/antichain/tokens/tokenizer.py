"""Reads tokenizers: a tokenizer.json of Hugging Face, or GPT-2's vocabulary and its merges."""

import hashlib
import pathlib

import tokenizers

from antichain.error import AntichainError

# By the names that their files have in Hugging Face's folders, and in OpenAI's.
PAIRS = ("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")
# Tokens that end a document, and that stand for hidden ones, in the order of trying.
ENDS = "<|endoftext|>", "</s>", "<|end_of_text|>", "[SEP]"
MASKS = "[MASK]", "<mask>"


class Tokenizer:
    """A tokenizer with its name, which says its file and a hash of what it does."""

    def __init__(self, path):
        """`path` is a tokenizer.json, or a folder that has one, or has a vocabulary and merges."""
        path = pathlib.Path(path)
        file = path / "tokenizer.json" if path.is_dir() else path
        pairs = [[path / name for name in pair] for pair in PAIRS]
        try:
            if file.is_file():
                self.tokenizer = tokenizers.Tokenizer.from_file(str(file))
            else:
                vocabulary, merges = next(pair for pair in pairs if all(part.is_file() for part in pair))
                self.tokenizer = tokenizers.ByteLevelBPETokenizer(str(vocabulary), str(merges))
        except StopIteration:
            names = " or ".join(" with ".join(pair) for pair in PAIRS)
            wrong = f"{path} is neither a tokenizer.json nor a folder with one, or with {names}"
            raise AntichainError(wrong) from None
        except Exception as problem:  # the package throws plain ones
            raise AntichainError(f"{path} is no tokenizer that can be read: {problem}") from problem
        ids = self.tokenizer.get_vocab()
        self.vocabulary = max(ids.values()) + 1
        self.end = next((ids[end] for end in ENDS if end in ids), None)
        self.mask = next((ids[mask] for mask in MASKS if mask in ids), None)
        digest = hashlib.sha256(self.tokenizer.to_str().encode()).hexdigest()[:16]
        self.name = f"{path.resolve().parent.name if path.name == 'tokenizer.json' else path.stem} {digest}"

    def encode(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.tokenizer.decode(ids, skip_special_tokens=False)

    def id_of(self, token):
        found = self.tokenizer.token_to_id(token)
        if found is None:
            raise AntichainError(f"the vocabulary has no token {token!r}, which should end a document")
        return found

    def parts_at_words(self):
        """Says whether a text that is parted before a word has the tokens of its parts. It is so for GPT-2's
        and its kin; others begin each text in a way of their own."""
        text = "one two. Three, 4 fünf"
        parts = [text[:i] for i in range(len(text)) if text[i] == " "]
        whole = self.encode(text)
        return all(self.encode(part) + self.encode(text[len(part) :]) == whole for part in parts)
