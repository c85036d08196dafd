"""Rows are written in pieces that are bounded by their number and by their bytes."""

from uuid import UUID

import pytest

from tests.builders.by_x import add
from tidegate_protocol.log.actions import DomainMetadata, Txn
from tidegate_protocol.log.bulk import BulkDecoder
from tidegate_protocol.log.codec import decode, encode, with_fields
from tidegate_protocol.log.spooled import SpooledAdd
from tidegate_service.core.log.files.compressed_lines import Spool
from tidegate_service.index.rows import keyed_rows
from tidegate_service.index.rows.file_rows import FileChange, pieces
from tidegate_service.index.writing import bulk_files

TABLE = UUID(int=1)


def changes(*sizes: int) -> list[FileChange]:
    """Adds with statistics of so many bytes; a remove where there are none."""
    return [
        FileChange(
            TABLE,
            1,
            (str(at), ""),
            None if not size else with_fields(add(str(at)), {"stats": "x" * size}),
        )
        for at, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ([], []),
        ([10] * 4, [4]),
        ([10] * 5, [4, 1]),
        ([10] * 8, [4, 4]),
        ([0] * 9, [4, 4, 1]),
        # One that is larger than all may be goes alone.
        ([5000, 10, 10], [1, 2]),
        ([10, 5000, 10], [1, 1, 1]),
        ([600, 600, 600], [2, 1]),
    ],
)
def test_rows_of_a_statement(sizes, lengths):
    given = changes(*sizes)
    found = list(pieces(given, most_rows=4, most_bytes=2000))
    assert [len(piece) for piece in found] == lengths
    assert [change for piece in found for change in piece] == given


@pytest.mark.parametrize(("sizes", "statements"), [([10] * 4, 1), ([10] * 5, 2), ([900] * 4, 2)])
def test_domains_and_applications_of_a_statement(sizes, statements):
    few = {"most_rows": 4, "most_bytes": 2100}
    texts = ["x" * size for size in sizes]
    domains = [
        DomainMetadata(domain=str(at), configuration=text, removed=False)
        for at, text in enumerate(texts)
    ]
    txns = [Txn(app_id=f"{at}{text}", version=1) for at, text in enumerate(texts)]
    of_domains = {(TABLE, one.domain): (1, decode(encode(one))) for one in domains}
    of_txns = {(TABLE, one.app_id): (1, decode(encode(one))) for one in txns}
    assert len(list(keyed_rows.set_domains(of_domains, **few))) == statements
    assert len(list(keyed_rows.set_app_transactions(of_txns, **few))) == statements


def spooled(lines: int, size: int, spool: Spool) -> list[SpooledAdd]:
    """Adds of so many lines that are kept together, of so many bytes in all."""
    text = b"".join(
        encode(add(f"{size}/{at}", stats=f'{{"minValues":{{"c":"{"x" * (size // lines)}"}}}}'))
        + b"\n"
        for at in range(lines)
    )
    found = BulkDecoder(spool.keep).decode(text)
    assert found is not None
    return [action for action in found if isinstance(action, SpooledAdd)]


def test_blocks_of_a_very_large_commit():
    spool = Spool()
    groups = [
        spooled(lines, size, spool) for lines, size in [(6, 60), (6, 60)] * 3 + [(2, 12_000)] * 2
    ]
    given = [action for group in groups for action in group]
    found = list(bulk_files._blocks(given, first_rows=10, most_rows=20, most_bytes=10_000))
    # By number, twice as many each time, and what is kept together stays so; then by bytes.
    assert [len(block) for block in found] == [12, 24, 2, 2]
    assert [action for block in found for action in block] == given
