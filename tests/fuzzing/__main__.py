"""One target for a while: `python -m tests.fuzzing <target> [--seconds N] [--seed N]`.

With `--corpus DIR` it goes on from what was worth keeping there and adds to it; `--replay FILE`
asks about one input that was found. libFuzzer
ends the process: 0 where nothing was found, else with the input, which it leaves in a file.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import atheris

from tests.fuzzing.mutating import mutator

MAX_BYTES = 4096
MAX_S = 10
"""Of one input, however it comes to be slow."""
MAX_MIB = 2048


def fuzz(
    check: Callable[[bytes], None],
    seeds: Sequence[bytes],
    words: Sequence[str],
    asked: argparse.Namespace,
) -> None:
    """Does not return."""
    with tempfile.TemporaryDirectory(prefix="tidegate-fuzzing-") as folder:
        first, found = Path(folder, "seeds"), Path(folder, "corpus")
        first.mkdir()
        found.mkdir()
        for number, seed in enumerate(seeds):
            (first / str(number)).write_bytes(seed)
        dictionary = Path(folder, "words")
        dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in words))
        atheris.Setup(
            [
                "fuzzing",
                f"-max_total_time={asked.seconds}",
                f"-max_len={MAX_BYTES}",
                f"-timeout={MAX_S}",
                f"-rss_limit_mb={MAX_MIB}",
                f"-seed={asked.seed}",
                f"-dict={dictionary}",
                f"-artifact_prefix={asked.findings}/{asked.target}-",
                "-print_final_stats=1",
                str(asked.corpus or found),
                str(first),
            ],
            check,
            custom_mutator=None if asked.target == "predicates" else mutator(_mutate),
        )
        atheris.Fuzz()


def _mutate(data: bytes, size: int) -> bytes:
    # Looked up late: `Fuzz` puts the real one in its place.
    return atheris.Mutate(data, size)


def _escaped(word: str) -> str:
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}"
        for byte in word.encode("utf-8", "surrogatepass")
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing")
    parser.add_argument("target", choices=("actions", "commits", "predicates"))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="inputs that are worth keeping, kept there")
    parser.add_argument("--findings", type=Path, default=Path("."), help="where findings go")
    parser.add_argument("--replay", type=Path)
    asked = parser.parse_args()
    # Imported here, so that what decides is seen branch by branch.
    with atheris.instrument_imports(include=["tidegate_protocol"]):
        from tests.fuzzing import properties, seeds
    check = properties.CHECKS[asked.target]
    if asked.replay is not None:
        check(asked.replay.read_bytes())
        return 0
    fuzz(check, seeds.SEEDS[asked.target], seeds.WORDS[asked.target], asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
