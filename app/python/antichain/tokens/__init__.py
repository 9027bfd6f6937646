"""Text as tokens of a vocabulary: sets for training, and prompts for generation (python3 -m antichain.tokens,
python3 -m antichain.generate). The program itself knows bytes alone."""
