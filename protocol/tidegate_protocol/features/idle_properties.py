"""Table properties that are accepted, and that nothing of Tidegate acts on.

A table may have them for other engines, which find them in its log. Whoever sets one is told, so
that nobody waits for what does not happen.
"""

from collections.abc import Iterator, Mapping

IDLE: Mapping[str, str] = {
    "delta.autoOptimize": "files are not compacted by themselves",
    "delta.autoOptimize.autoCompact": "files are not compacted by themselves",
    "delta.autoOptimize.optimizeWrite": "writers here do not sort rows into fewer files",
    "delta.castIcebergTimeType": "Iceberg tables are not converted",
    "delta.checkpointRetentionDuration": "checkpoints are not deleted by an age of their own",
    "delta.coordinatedCommits.commitCoordinatorConf-preview": "no other coordinator is asked",
    "delta.coordinatedCommits.tableConf-preview": "no other coordinator is asked",
    "delta.dropFeatureTruncateHistory.retentionDuration": "dropping a feature truncates nothing",
    "delta.enableFullRetentionRollback": "no commits are kept for it beyond the log's retention",
    "delta.ignoreIcebergBucketPartition": "Iceberg tables are not converted",
    "delta.parquet.compression.codec": "writers here take their session's codec",
    "delta.parquet.format.version": "writers here take their session's version",
    "delta.randomPrefixLength": "files have no random prefixes",
    "delta.randomizeFilePrefixes": "files have no random prefixes",
    "delta.sampleRetentionDuration": "samples are not kept",
    "delta.universalFormat.config.*": "the table is not shown in other formats",
    "delta.universalFormat.enabledFormats": "the table is not shown in other formats",
    "delta.universalFormat.iceberg.atomicConversion.supported": "the table is not shown in other "
    "formats",
    "delta.writePartitionColumnsToParquet": "writers here leave partition columns out of files",
}
"""Each by its name as Delta spells it, with what does not happen; `*` is any end of a name."""
_OPEN = {name[:-1].lower(): why for name, why in IDLE.items() if name.endswith("*")}


def warnings_of(configuration: Mapping[str, str]) -> Iterator[str]:
    """What to tell whoever set these properties (spelled as Delta does), in the order of names."""
    for name in sorted(configuration):
        reasons = [why for start, why in _OPEN.items() if name.lower().startswith(start)]
        reason = IDLE.get(name, *reasons)
        if reason is not None:
            yield f"the property {name} has no effect here: {reason}"
