"""Why a checkpoint's file is not read."""


class TooLarge(Exception):
    """A file would take too much memory or time; the message says what does."""
