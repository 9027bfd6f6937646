"""The one kind of error that this package raises on purpose."""


class AntichainError(Exception):
    """One sentence that says what is wrong, where, and what to do. `code` is the exit code that the program
    gave, or None where the program did not say it."""

    def __init__(self, sentence, code=None):
        super().__init__(sentence)
        self.code = code
