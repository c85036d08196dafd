"""Version checksums, `<version>.crc`: what a table is at a version, in numbers (PROTOCOL.md,
"Version Checksum File"). Made of what is known, read back, and compared; no I/O.
"""
