"""What went wrong between us and an object store: obstore's errors, translated once.

obstore tells neither an answer's status nor where a request ended but in the text of its errors.
That ends in Rust's own rendering of the error, one field a line, in which whatever the server
sent is a quoted string without line breaks: a server cannot forge a line of it. Where the
rendering is not as expected, nothing is taken for known.
"""

import re
from dataclasses import dataclass

_RENDERING = "Debug source:\n"
_STATUS = re.compile(r"^\s+status: ([0-9]{3}),$", re.MULTILINE)
_KIND = re.compile(r"^\s+kind: (\w+),$", re.MULTILINE)
_REDIRECT = re.compile(r"^\s+inner: BareRedirect,$", re.MULTILINE)
# How S3, GCS and Azure name the error in the body, which the rendering quotes.
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
# Answers by which a store says that it has not done what it was asked.
_REFUSALS = frozenset({400, 401, 403, 404, 405, 411, 413, 414, 416, 431})
_NO_BUCKET = frozenset({"NoSuchBucket", "ContainerNotFound"})
_THERE = frozenset({"BlobAlreadyExists"})
# The request was not sent: no connection was made, or none was tried.
_UNSENT = frozenset({"Connect", "Builder"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`status` of the answer and `code` of its body; `kinds`, from the outside in, say where a
    request without an answer ended."""

    status: int | None
    code: str | None
    kinds: tuple[str, ...] = ()
    redirected: bool = False

    @property
    def unsent(self) -> bool:
        """True where nothing of the request can have reached the store."""
        return not _UNSENT.isdisjoint(self.kinds)

    @property
    def refused(self) -> bool:
        """True where the request had certainly no effect."""
        return self.unsent or self.redirected or self.status in _REFUSALS

    @property
    def says_taken(self) -> bool:
        """True where a conditional write failed because the name is taken. 409 is no such
        answer: it also says that another write of the name was under way, which may yet fail."""
        return self.status in (304, 412) or self.code in _THERE

    @property
    def no_bucket(self) -> bool:
        return self.code in _NO_BUCKET

    def __str__(self) -> str:
        """Short; without a name, an address or a value that was sent."""
        if self.redirected:
            return "it answered that the bucket is elsewhere"
        if self.status is not None:
            return f"it answered {self.status}" + (f" {self.code}" if self.code else "")
        if "Builder" in self.kinds:
            return "its address cannot be used"
        if "Connect" in self.kinds:
            return "it could not be reached"
        if "Timeout" in self.kinds:
            return "it did not answer in time"
        return "it did not answer as expected"


def failure(error: Exception) -> Failure:
    """What an error of obstore says."""
    _, found, rendering = str(error).rpartition(_RENDERING)
    if not found:
        return Failure(status=None, code=None)
    status = _STATUS.search(rendering)
    code = _CODE.search(rendering)
    return Failure(
        status=int(status[1]) if status else None,
        code=code[1] if status and code else None,
        kinds=() if status else tuple(_KIND.findall(rendering)),
        redirected=_REDIRECT.search(rendering) is not None,
    )
