"""The one kind of error that this package raises on purpose."""


class AntichainError(Exception):
    """One sentence that says what is wrong, where, and what to do."""

    code = None  # the program's exit code, where it was the program that said it
