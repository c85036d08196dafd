"""What the search begins with: inputs that are well-formed, and the words of their grammars."""

import random

from tests.spark.predicates.grammar import Grammar
from tidegate_protocol.scan.predicate.syntax.dialect import WORDS as GRAMMAR_WORDS

_LINES = (
    '{"add":{"path":"p=1/a.parquet","partitionValues":{"p":"1"},"size":1,"modificationTime":2,'
    '"dataChange":true,"stats":"{\\"numRecords\\":1,\\"minValues\\":{\\"x\\":1},'
    '\\"nullCount\\":{\\"x\\":0}}","tags":{"k":null},"baseRowId":3,'
    '"defaultRowCommitVersion":4,"clusteringProvider":"liquid"}}',
    '{"add":{"path":"a%20b","partitionValues":{},"size":1,"modificationTime":2,"dataChange":false,'
    '"deletionVector":{"storageType":"u","pathOrInlineDv":"ab^-aqEH.-t@S}K{vb[*k^","offset":4,'
    '"sizeInBytes":40,"cardinality":6}}}',
    '{"remove":{"path":"a","deletionTimestamp":1,"dataChange":true,"extendedFileMetadata":true,'
    '"partitionValues":{"p":null},"size":1}}',
    '{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":'
    '"{\\"type\\":\\"struct\\",\\"fields\\":[{\\"name\\":\\"x\\",\\"type\\":\\"long\\",'
    '\\"nullable\\":true,\\"metadata\\":{}}]}","partitionColumns":[],"configuration":'
    '{"delta.appendOnly":"true"},"createdTime":1}}',
    '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],'
    '"writerFeatures":["deletionVectors","inCommitTimestamp"]}}',
    '{"commitInfo":{"timestamp":1,"inCommitTimestamp":2,"operation":"WRITE","isBlindAppend":true,'
    '"operationParameters":{"mode":"Append"},"tidegate":{"bodyDigest":"ab"}}}',
    '{"txn":{"appId":"x","version":1,"lastUpdated":2}}',
    '{"domainMetadata":{"domain":"delta.rowTracking",'
    '"configuration":"{\\"rowIdHighWaterMark\\":4}","removed":false}}',
    '{"cdc":{"path":"_change_data/a","partitionValues":{},"size":1,"dataChange":false}}',
    '{"newKind":{"a":[1,2.5,-0,1e5,"\\u00e4\\ud83d\\ude00",null,true]}}',
    '{"commitInfo":{"x":[[[[1]]]],"y":100000000000000000000000000000,"z":1E400}}',
)
_JSON_WORDS = (
    *'{}[]:,"\\',
    "null",
    "true",
    "NaN",
    "Infinity",
    "-0",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "\\ud800",
    "\u2028",
    "\ufeff",
    "\\/",
    "add",
    "remove",
    "metaData",
    "protocol",
    "commitInfo",
    "txn",
    "domainMetadata",
    "cdc",
    "partitionValues",
    "deletionVector",
    "stats",
    "numRecords",
    "minValues",
    "schemaString",
    "configuration",
    "inCommitTimestamp",
    "tidegate",
    "bodyDigest",
    " raw",
)
_FUNCTIONS = (
    "cast( as int)",
    "try_cast(",
    "coalesce(",
    "nullif(",
    "if(",
    "substring(",
    "trim(both from ",
    "extract(year from ",
    "date_trunc('HOUR',",
    "to_date(",
    "like 'a%' escape '!'",
    "rlike '^[a-c]+$'",
    "::decimal(10,2)",
    "timestamp '",
    "date '",
    "x'61'",
    "interval 1 day",
    "1e300",
    "1.5bd",
    "-9223372036854775808",
    "d_string",
    "p_string",
    "n.d_integer",
    "`p_date`",
    "--",
    "/*",
    "\\u0000",
    "is distinct from",
    "<=>",
    "||",
    "->",
)

_generated = Grammar(random.Random(7))
SEEDS: dict[str, tuple[bytes, ...]] = {
    "actions": tuple(line.encode() for line in _LINES),
    "commits": (
        "\n".join(_LINES[:6]).encode(),
        "\n".join(_LINES[6:]).encode() + b"\n\n",
        *(f"{line}\n".encode() for line in _LINES),
    ),
    "predicates": tuple(_generated.whole().encode() for _ in range(200)),
}
WORDS: dict[str, tuple[str, ...]] = {
    "actions": _JSON_WORDS,
    "commits": (*_JSON_WORDS, "\n"),
    "predicates": (*GRAMMAR_WORDS, *_FUNCTIONS, *"()[],.'\"\\"),
}
