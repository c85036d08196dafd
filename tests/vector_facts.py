"""What a vector says of the log after its transaction (`expect_log`, `live_files`).

Everything is read from the log's JSON lines alone, so that a mistake in folding commits
elsewhere cannot hide itself.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Line = Mapping[str, Any]
"""One parsed line of a commit: the kind of action and its body."""
Log = Sequence[Sequence[Line]]
"""The lines of every version, from version 0."""
Fact = Mapping[str, Any]

_ROW_FIELDS = ("baseRowId", "defaultRowCommitVersion")
_OF_VERSION = "== inCommitTimestamp of version "


def broken_facts(facts: Sequence[Fact], log: Log, *, version: int, last_winner: int) -> list[str]:
    """The facts that do not hold. `version` is where the transaction landed, `last_winner` the
    version of the last winner."""
    check = _Facts(log, version=version, last_winner=last_winner)
    return [f"fact does not hold: {dict(fact)}" for fact in facts if not check.holds(fact)]


def live_files(log: Log) -> list[str]:
    """Paths of the live files, sorted; one with a deletion vector counts once."""
    live: set[tuple[str, str | None]] = set()
    for lines in log:
        for line in lines:
            if "add" in line:
                live.add(_key(line["add"]))
            elif "remove" in line:
                live.discard(_key(line["remove"]))
    return sorted({path for path, _ in live})


def _key(body: Mapping[str, Any]) -> tuple[str, str | None]:
    vector = body.get("deletionVector")
    if vector is None:
        return body["path"], None
    return body["path"], f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


class _Facts:
    def __init__(self, log: Log, *, version: int, last_winner: int) -> None:
        self._log = log
        self._version = version
        self._last_winner = last_winner

    def holds(self, fact: Fact) -> bool:
        match fact:
            case {"path": path}:
                return self._file("add", path, fact)
            case {"removed": str(path)}:
                return self._file("remove", path, fact)
            case {"absent": path}:
                return all(add["path"] != path for add in self._own("add"))
            case {"domain": domain, "removed": True}:
                return self._domain(domain) is None
            case {"domain": domain, "configuration": expected}:
                return self._has_configuration(domain, expected)
            case {"inCommitTimestamp": "> winner"}:
                return self._later_than(self._last_winner)
            case {"inCommitTimestamp": "> previous"}:
                return self._later_than(self._version - 1)
            case {"configuration": expected}:
                return all(
                    self._properties().get(name) == self._property(text)
                    for name, text in expected.items()
                )
            case {"configuration_absent": names}:
                return not set(names) & self._properties().keys()
            case {"commitInfoTag": tag, "value": value}:
                return (self._commit_info(self._version).get("tags") or {}).get(tag) == value
            case {"txn": app_id, **rest}:
                return self._txn(app_id, rest)
            case {"version": version}:
                return self._version == version
        raise ValueError(f"no such fact: {fact}")

    def _own(self, kind: str) -> list[Mapping[str, Any]]:
        return [line[kind] for line in self._log[self._version] if kind in line]

    def _bodies(self, kind: str) -> Iterator[Mapping[str, Any]]:
        """Every body of a kind up to the transaction's version, newest last."""
        for lines in self._log[: self._version + 1]:
            yield from (line[kind] for line in lines if kind in line)

    def _file(self, kind: str, path: str, fact: Fact) -> bool:
        return any(
            all(body.get(field) == fact[field] for field in _ROW_FIELDS if field in fact)
            for body in self._own(kind)
            if body["path"] == path
        )

    def _domain(self, name: str) -> Mapping[str, Any] | None:
        newest = [body for body in self._bodies("domainMetadata") if body["domain"] == name]
        return newest[-1] if newest and not newest[-1]["removed"] else None

    def _has_configuration(self, name: str, expected: object) -> bool:
        domain = self._domain(name)
        if domain is None:
            return False
        text = domain["configuration"]
        return text == expected if isinstance(expected, str) else json.loads(text) == expected

    def _commit_info(self, version: int) -> Mapping[str, Any]:
        return self._log[version][0]["commitInfo"]

    def _later_than(self, version: int) -> bool:
        before = self._commit_info(version)
        own = self._commit_info(self._version).get("inCommitTimestamp")
        # A winner from before the timestamps were enabled has only its commit's clock.
        return own is not None and own > before.get("inCommitTimestamp", before["timestamp"])

    def _properties(self) -> Mapping[str, str]:
        *_, metadata = self._bodies("metaData")
        return metadata["configuration"]

    def _property(self, text: str) -> str:
        if text == "== inCommitTimestamp":
            return str(self._commit_info(self._version)["inCommitTimestamp"])
        if text.startswith(_OF_VERSION):
            version = int(text.removeprefix(_OF_VERSION))
            return str(self._commit_info(version)["inCommitTimestamp"])
        return text

    def _txn(self, app_id: str, rest: Mapping[str, int]) -> bool:
        newest = [body for body in self._bodies("txn") if body["appId"] == app_id]
        own = [body for body in self._own("txn") if body["appId"] == app_id]
        return (
            bool(newest)
            and newest[-1]["version"] == rest.get("version", newest[-1]["version"])
            and len(own) == rest.get("count", len(own))
        )
