"""A Tidegate service as a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

STOP_S = 30.0
_READY = re.compile(r"ready at (http://\S+)")


class ServiceFailed(Exception):
    """The service did not start; the message says what it printed last."""


@dataclass(frozen=True, slots=True)
class Service:
    """`log` is the file that the service writes its log to."""

    url: str
    process: subprocess.Popen[str]
    log: Path

    def stop(self) -> None:
        """Ask it to end and wait; killed if it does not."""
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(data_dir: Path, settings: Mapping[str, str]) -> Service:
    """Serve on a free port with an embedded Postgres and return once it is ready. `settings` are
    the service's, by the names of their environment variables.

    The process has a session of its own: Ctrl-C reaches the demo alone, which then stops it.
    """
    log = data_dir / "service.log"
    tidegate = str(Path(sys.executable).with_name("tidegate"))
    with log.open("w") as errors:
        process = subprocess.Popen(
            [tidegate, "serve", "--port", "0", "--data-dir", str(data_dir)],
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            env={**os.environ, **settings},
        )
    assert process.stdout is not None
    for line in process.stdout:
        if ready := _READY.search(line):
            return Service(url=ready[1], process=process, log=log)
    process.wait()
    raise ServiceFailed(f"the service ended with {process.returncode}:\n{log.read_text()[-2000:]}")
