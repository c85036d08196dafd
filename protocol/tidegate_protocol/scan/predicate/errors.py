"""The one error of this package."""


class InvalidPredicate(ValueError):
    """The text is not a predicate over the table's columns.

    `position` is where in the text, in characters from 0, or None where no place is to blame;
    the message names it, counted from 1.
    """

    def __init__(self, detail: str, *, position: int | None = None) -> None:
        place = "" if position is None else f" (at character {position + 1})"
        super().__init__(f"{detail}{place}")
        self.detail = detail
        self.position = position
