"""Bodies that are no body of any call: made from the document's own examples.

Each entry takes a whole body and breaks it. Whatever the call, the answer is a 4xx problem, and
nothing is written.
"""

import json
from collections.abc import Callable

Break = Callable[[bytes], bytes]

DEPTH = 100_000
MIB = 1024 * 1024


def _with_first(field: bytes) -> Break:
    """One more field, before the others; its name is one that no body has."""
    return lambda body: b"{" + field + b"," + body.lstrip()[1:]


def _value(value: bytes) -> Break:
    return _with_first(b'"x":' + value)


def _twice(body: bytes) -> bytes:
    """The body's first field twice."""
    name, value = next(iter(json.loads(body).items()))
    return _with_first(f"{json.dumps(name)}:{json.dumps(value)}".encode())(body)


def _twice_escaped(body: bytes) -> bytes:
    name, value = next(iter(json.loads(body).items()))
    escaped = "".join(f"\\u{ord(character):04x}" for character in name)
    return _with_first(f'"{escaped}":{json.dumps(value)}'.encode())(body)


def _in_first_string(text: bytes) -> Break:
    """Something in the middle of the body's first key."""
    return lambda body: body.replace(b'"', b'"' + text, 1)


WHOLE: dict[str, Break] = {
    "nothing": lambda body: b"",
    "blanks": lambda body: b" \t\r\n ",
    "null": lambda body: b"null",
    "true": lambda body: b"true",
    "a number": lambda body: b"1",
    "a string": lambda body: json.dumps(body.decode()).encode(),
    "an array": lambda body: b"[" + body + b"]",
    "an empty array": lambda body: b"[]",
    "half of it": lambda body: body[: len(body) // 2],
    "all but its end": lambda body: body.rstrip()[:-1],
    "one brace": lambda body: b"{",
    "a brace too many": lambda body: body + b"}",
    "it twice": lambda body: body + body,
    "something after it": lambda body: body + b" x",
    "NUL after it": lambda body: body + b"\0",
    "a byte order mark": lambda body: b"\xef\xbb\xbf" + body,
    "UTF-16": lambda body: body.decode().encode("utf-16"),
    "UTF-16 without a mark": lambda body: body.decode().encode("utf-16-be"),
    "UTF-32": lambda body: body.decode().encode("utf-32"),
    "bytes of no text": lambda body: bytes(range(128, 256)),
    "NULs": lambda body: b"\0" * 1000,
    "a form": lambda body: b"operation=WRITE&actions=%5B%5D",
    "XML": lambda body: b'<?xml version="1.0"?><!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    "YAML": lambda body: b"operation: WRITE\nactions: []\n",
    "a pickle": lambda body: b"cos\nsystem\n(S'true'\ntR.",
    "MessagePack": lambda body: b"\x82\xa9operation\xa5WRITE\xa7actions\x90",
    "single quotes": lambda body: body.replace(b'"', b"'"),
    "a comment": lambda body: b"/* */" + body,
    "a comment inside": _with_first(b"// \n"),
    "a trailing comma": lambda body: body.rstrip()[:-1] + b",}",
    "a bare key": _with_first(b"x:1"),
    "a number for a key": _with_first(b"1:1"),
    "no value": _with_first(b'"x":'),
    "no colon": _with_first(b'"x" 1'),
}

VALUES: dict[str, Break] = {
    "NaN": _value(b"NaN"),
    "infinity": _value(b"Infinity"),
    "minus infinity": _value(b"-Infinity"),
    "1e999": _value(b"1e999"),
    "-1e999": _value(b"-1e999"),
    "5,000 digits": _value(b"1" * 5000),
    "5,000 decimals": _value(b"0." + b"1" * 5000),
    "an exponent of 5,000 digits": _value(b"1e" + b"9" * 5000),
    "a leading zero": _value(b"01"),
    "a plus": _value(b"+1"),
    "no integer part": _value(b".5"),
    "hex": _value(b"0x10"),
    "True": _value(b"True"),
    "undefined": _value(b"undefined"),
    "a lone surrogate": _value(b'"\\ud800"'),
    "a lone low surrogate": _value(b'"\\udc00"'),
    "surrogates the wrong way round": _value(b'"\\udc00\\ud800"'),
    "surrogates in UTF-8": _value(b'"\xed\xa0\x80"'),
    "an overlong slash": _value(b'"\xc0\xaf"'),
    "beyond Unicode": _value(b'"\xf4\x90\x80\x80"'),
    "a cut UTF-8 sequence": _value(b'"\xe2\x80"'),
    "Latin-1": _value(b'"caf\xe9"'),
    "an unknown escape": _value(b'"\\x41"'),
    "half an escape": _value(b'"\\u12"'),
    "a raw NUL": _value(b'"\0"'),
    "a raw line feed": _value(b'"a\nb"'),
    "a raw escape": _value(b'"\x1b[31m"'),
    "an escaped NUL": _value(b'"\\u0000"'),
    "an escaped NUL in a key": _with_first(b'"\\u0000":1'),
    "U+2028": _with_first('"\u2028\u202e":"\u2028"'.encode()),
    "an unknown field": _value(b"1"),
    "a field by its prototype": _with_first(b'"__proto__":{"x":1}'),
    "a key twice": _twice,
    "a key twice, once escaped": _twice_escaped,
    "NUL in a known key": _in_first_string(b"\\u0000"),
    "arrays in arrays": _value(b"[" * DEPTH + b"]" * DEPTH),
    "arrays that do not end": _value(b"[" * DEPTH),
    "objects in objects": _value(b'{"a":' * DEPTH + b"1" + b"}" * DEPTH),
    "both by turns": _value(b'[{"a":' * DEPTH + b"1" + b"}]" * DEPTH),
    "33 levels": _value(b"[" * 33 + b"]" * 33),
    "a long string": _value(b'"' + b"a" * 5 * MIB + b'"'),
    "a long key": _with_first(b'"' + b"a" * 5 * MIB + b'":1'),
    "a long key within a line": _with_first(b'"' + b"a" * MIB + b'":1'),
    "a long number": _value(b"1" * 5 * MIB),
    "many empty arrays": _value(b"[" + b"[]," * (2 * MIB) + b"[]]"),
    "many keys": _value(b"{" + b",".join(b'"%d":1' % n for n in range(500_000)) + b"}"),
    "many blanks": lambda body: b" " * 5 * MIB + body,
}

MALFORMED = WHOLE | VALUES

MEDIA_TYPES = (
    None,
    "",
    "text/plain",
    "text/json",
    "application/xml",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "application/json; charset=latin-1",
    "application/json, application/json",
    "application/vnd.api+json",
    "application/jsonp",
    "json",
    "*/*",
    "application/json\x85",
    "application/x-ndjson; charset=utf-7",
    "a" * 10_000,
)
