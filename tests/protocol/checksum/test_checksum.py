"""Checksums become the protocol's JSON and come back; what differs is told by field."""

import json

import pytest
from msgspec.structs import replace

from tidegate_protocol.checksum.checksum import (
    Checksum,
    InvalidChecksum,
    decode,
    differences,
    encode,
)
from tidegate_protocol.checksum.histograms import deleted_histogram, histogram_of_sizes
from tidegate_protocol.log.actions import Add, DomainMetadata, Metadata, Protocol, Txn
from tidegate_protocol.log.codec import decode as action

METADATA = action(b'{"metaData":{"id":"i","format":{"provider":"parquet"},"beyond":[1]}}')
PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
LEAST = Checksum(table_size_bytes=10, num_files=1, metadata=METADATA, protocol=PROTOCOL)
FILE = Add(path="a", partition_values={}, size=10, modification_time=1, data_change=False)
ALL = replace(
    LEAST,
    txn_id="t",
    num_deleted_records=2,
    num_deletion_vectors=1,
    in_commit_timestamp=5,
    set_transactions=(Txn(app_id="app", version=1), Txn(app_id="b", version=2)),
    domain_metadata=(DomainMetadata(domain="d", configuration="{}", removed=False),),
    file_size_histogram=histogram_of_sizes([10]),
    deleted_record_counts_histogram=deleted_histogram(1, [2]),
    all_files=(FILE,),
)


def test_what_is_not_known_is_left_out():
    body = json.loads(encode(LEAST))
    assert body == {
        "tableSizeBytes": 10,
        "numFiles": 1,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": {"id": "i", "format": {"provider": "parquet"}, "beyond": [1]},
        "protocol": {"minReaderVersion": 1, "minWriterVersion": 2},
    }


def test_every_field_has_the_protocols_name():
    assert set(json.loads(encode(ALL))) == {
        "txnId",
        "tableSizeBytes",
        "numFiles",
        "numMetadata",
        "numProtocol",
        "inCommitTimestampOpt",
        "setTransactions",
        "domainMetadata",
        "metadata",
        "protocol",
        "fileSizeHistogram",
        "allFiles",
        "numDeletedRecordsOpt",
        "numDeletionVectorsOpt",
        "deletedRecordCountsHistogramOpt",
    }


@pytest.mark.parametrize("checksum", [LEAST, ALL])
def test_what_is_written_is_read(checksum):
    assert differences(decode(encode(checksum)), checksum) == {}
    assert encode(checksum).endswith(b"}\n")


def test_the_older_name_of_the_histogram_is_known():
    body = json.loads(encode(ALL))
    body["histogramOpt"] = body.pop("fileSizeHistogram")
    assert decode(json.dumps(body).encode()).file_size_histogram == ALL.file_size_histogram


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "not valid JSON"),
        (b"[]", "expected a JSON object"),
        (b"{}", "missing required field"),
        (encode(LEAST).replace(b'"numFiles":1', b'"numFiles":"1"'), "numFiles"),
        (encode(ALL).replace(b'"sortedBinBoundaries":[0', b'"sortedBinBoundaries":[1'), "from 0"),
    ],
)
def test_what_is_no_checksum_is_refused(content, why):
    with pytest.raises(InvalidChecksum, match=why):
        decode(content)


def test_one_that_is_too_long_is_not_read():
    with pytest.raises(InvalidChecksum, match="at most 10 are read"):
        decode(encode(LEAST), max_bytes=10)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_files": 2}, {"numFiles": "expected 1, found 2"}),
        ({"txn_id": "u"}, {"txnId": "expected 't', found 'u'"}),
        ({"metadata": Metadata(id="other")}, {"metadata": "it is another one"}),
        ({"protocol": replace(PROTOCOL, min_writer_version=3)}, {"protocol": "it is another one"}),
        ({"set_transactions": ()}, {"setTransactions": "it is another one"}),
        ({"set_transactions": tuple(reversed(ALL.set_transactions))}, {}),
        ({"domain_metadata": ()}, {"domainMetadata": "it is another one"}),
        ({"all_files": (replace(FILE, size=11),)}, {"allFiles": "it is another one"}),
        ({"all_files": (replace(FILE, data_change=True),)}, {}),
        ({"file_size_histogram": None, "all_files": None}, {}),
        (
            {"file_size_histogram": histogram_of_sizes([9])},
            {"fileSizeHistogram": "it is another one"},
        ),
    ],
)
def test_differences_are_told_by_field(changes, said):
    assert differences(replace(ALL, **changes), ALL) == said


def test_what_is_not_known_differs_from_nothing():
    assert differences(ALL, LEAST) == {}
