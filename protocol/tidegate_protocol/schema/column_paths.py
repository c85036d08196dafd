"""Names of columns and nested fields in text, as table properties and SQL write them."""


class InvalidColumnPath(ValueError):
    """The text is no path, or no list of paths; the message says why."""


def parse(text: str) -> tuple[str, ...]:
    """The names in a dotted path: ``a.`b.c` `` -> ("a", "b.c"). Raises `InvalidColumnPath`."""
    paths = parse_list(text)
    if len(paths) != 1:
        raise InvalidColumnPath(f"expected the path of one column, found {text!r}")
    return paths[0]


def parse_list(text: str) -> tuple[tuple[str, ...], ...]:
    """The paths in a comma-separated list, as in `delta.dataSkippingStatsColumns`. A name with
    anything but letters, digits and underscores stands in backticks, a backtick in one doubled.

    Raises `InvalidColumnPath`.
    """
    paths: list[tuple[str, ...]] = []
    path: list[str] = []
    position = 0
    text = text.strip()
    while text:
        name, position = _name(text, position)
        path.append(name)
        separator = text[position : position + 1]
        if separator != ".":
            paths.append(tuple(path))
            path = []
        if not separator:
            break
        if separator not in ".,":
            raise InvalidColumnPath(f"{text!r} is not a list of columns: unexpected {separator!r}")
        position += 1
    return tuple(paths)


def _name(text: str, start: int) -> tuple[str, int]:
    """The name at a position and the position of the separator behind it."""
    while text[start : start + 1].isspace():
        start += 1
    if text[start : start + 1] == "`":
        name, end = _quoted(text, start + 1)
    else:
        end = start
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        name = text[start:end]
    if not name:
        raise InvalidColumnPath(f"{text!r} is not a list of columns: a name is missing")
    while text[end : end + 1].isspace():
        end += 1
    return name, end


def _quoted(text: str, start: int) -> tuple[str, int]:
    name = ""
    while (end := text.find("`", start)) >= 0:
        name += text[start:end]
        if text[end + 1 : end + 2] != "`":
            return name, end + 1
        name += "`"
        start = end + 2
    raise InvalidColumnPath(f"{text!r} is not a list of columns: a backtick is not closed")
