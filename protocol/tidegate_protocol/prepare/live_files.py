"""What file actions assume of the files that are live at their read version.

PROTOCOL.md, "Add File and Remove File": a path is live with one deletion vector at most, and a
remove names the path and the vector. Delta Spark checks neither: a remove of another vector leaves
the file live, and an add of another vector has the rows of the file twice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate_protocol.base.problems import Code
from tidegate_protocol.features.table_features import may_have_vectors
from tidegate_protocol.log.actions import Action, Add, LogicalFile, Remove, file_key
from tidegate_protocol.proposal.transaction import Invalid, PreparedTransaction


@dataclass(frozen=True, slots=True)
class FileAssumptions:
    """That `removed` are live, and that each path of `added` is live with no other deletion vector
    than the one of this id (None: without any), if at all. No path is in both."""

    removed: frozenset[LogicalFile] = frozenset()
    added: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Files that have to be looked up."""
        return len(self.removed) + len(self.added)

    def broken(self, live: Collection[LogicalFile]) -> set[LogicalFile]:
        """The files by which they are not true of a snapshot: those of `removed` that are not live,
        and those of a path in `added` that are live with another vector."""
        gone = {file for file in self.removed if file not in live}
        return gone | {(path, v) for path, v in live if self.added.get(path, v) != v}


Assumed = tuple[FileAssumptions, int]
"""What is assumed of a version."""


def assumptions_of(actions: Sequence[Action], *, vectors: bool) -> FileAssumptions:
    """The assumptions of file actions. Without `vectors` in the table, an add can only replace the
    action of the same file, so that no added path has to be looked up."""
    removed = frozenset(file_key(action) for action in actions if isinstance(action, Remove))
    if not vectors:
        return FileAssumptions(removed)
    # Where a remove names the file that is live, no commit of the service has made another one.
    paths = {path for path, _ in removed}
    added = dict(file_key(action) for action in actions if isinstance(action, Add))
    return FileAssumptions(removed, {path: v for path, v in added.items() if path not in paths})


def assumptions_of_transaction(txn: PreparedTransaction) -> FileAssumptions:
    """The assumptions of its proposal, which rebasing past winners does not change."""
    return assumptions_of(
        txn.proposal.actions, vectors=may_have_vectors(txn.read.protocol, txn.protocol)
    )


def check_assumptions(
    actions: Sequence[Action],
    assumptions: FileAssumptions,
    broken: Collection[LogicalFile],
    *,
    version: int,
) -> Invalid | None:
    """Why the actions are invalid whose assumptions are `broken` by these files of their read
    version: the first action that one of the files concerns."""
    others = {path: vector for path, vector in broken if path in assumptions.added}
    for index, action in enumerate(actions if broken else ()):
        if not isinstance(action, Add | Remove):
            continue
        path, vector = file_key(action)
        if isinstance(action, Remove) and (path, vector) in broken:
            return Invalid(
                code=Code.INVALID_ACTION,
                detail=f"{action.path!r} is removed {_with(vector)}, and no such file is live at "
                f"version {version}: a remove names the path and the deletion vector of the "
                "file's add",
                action_index=index,
                path=action.path,
            )
        if isinstance(action, Add) and path in others:
            return Invalid(
                code=Code.DELETION_VECTOR_WITHOUT_REMOVE,
                detail=f"{action.path!r} is added {_with(vector)}, and is live "
                f"{_with(others[path])} at version {version}: name that vector, or, where the file "
                "gets another one, remove the file as it is in the same commit",
                action_index=index,
                path=action.path,
            )
    return None


def _with(vector: str | None) -> str:
    return "without a deletion vector" if vector is None else f"with the deletion vector {vector}"
