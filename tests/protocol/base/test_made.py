"""What was made of a part is made anew of another part alone."""

import pytest

from tidegate_protocol.base.made import Made


class Making:
    """Makes lists, and counts them."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, part: str) -> list[str]:
        self.times += 1
        if not part:
            raise ValueError(part)
        return [part]


def test_it_is_made_once_for_a_part():
    made, make, other = Made(), Making(), Making()
    part = "a"
    found = made.of(part, make)
    assert made.of(part, make) is found
    assert made.of(part, other) == found
    assert (make.times, other.times) == (1, 1)


def test_of_another_part_it_is_made_anew_be_they_equal_or_not():
    made, make = Made(), Making()
    one, equal = "ab", "".join("ab")
    assert one is not equal
    for times, part in enumerate((one, equal, one, "c"), start=1):
        assert made.of(part, make) == [part]
        assert make.times == times


def test_what_fails_fails_again():
    made, make = Made(), Making()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"^$"):
            made.of("", make)
    assert made.of("a", make) == ["a"]
