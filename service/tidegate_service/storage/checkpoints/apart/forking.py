"""The process from which readers are forked.

It has everything imported. For each file it gets two sockets: one on which the reader speaks with
the service, and one by which the service is told how the reader ended. A reader is ended once the
service lets go of the second.
"""

import gc
import os
import selectors
import signal
import socket
from contextlib import suppress

from tidegate_service.storage.checkpoints.apart.reader import serve


def main() -> None:
    """Serve the control socket, which is descriptor 0, until it ends; then end all readers."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Whoever stops the service stops it alone: its end is this one's.
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    gc.freeze()
    Forking(socket.socket(fileno=0)).run()


class Forking:
    """`control` is from whoever wants readers."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._readers: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, waking = socket.socketpair()
        self._woken.setblocking(False)
        waking.setblocking(False)
        self._waking = waking

    def run(self) -> None:
        signal.set_wakeup_fd(self._waking.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._selector.register(self._control, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        goes_on = True
        while goes_on or self._readers:
            for key, _ in self._selector.select():
                if key.fileobj is self._control:
                    goes_on = self._begin()
                elif key.fileobj is self._woken:
                    self._bury()
                elif self._readers.get(key.data) is key.fileobj:
                    # Not one that ended meanwhile, whose number another may have by now.
                    self._selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)

    def _begin(self) -> bool:
        """False once nobody will want a reader any more."""
        message, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
        if len(descriptors) != 2:
            for descriptor in descriptors:
                os.close(descriptor)
        if not message:
            self._selector.unregister(self._control)
            return False
        if len(descriptors) == 2:
            self._fork(*(socket.socket(fileno=number) for number in descriptors))
        return True

    def _fork(self, connection: socket.socket, fate: socket.socket) -> None:
        with connection:
            try:
                reader = os.fork()
            except OSError:
                # There is no room for one more: the service hears that nobody is ready.
                fate.close()
                return
            if reader == 0:
                try:
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    # It has nothing but its own connection: nobody waits for the end of a socket
                    # that it holds, and it can tell nobody how another reader ended.
                    for other in (self._control, fate, self._woken, self._waking):
                        other.close()
                    for other in self._readers.values():
                        other.close()
                    self._selector.close()
                    serve(connection)
                finally:
                    os._exit(0)
        self._readers[reader] = fate
        self._selector.register(fate, selectors.EVENT_READ, reader)

    def _bury(self) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(4096)
        while self._readers:
            reader, status = os.waitpid(-1, os.WNOHANG)
            if not reader:
                return
            fate = self._readers.pop(reader)
            with suppress(KeyError):
                self._selector.unregister(fate)
            _tell(fate, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0)


def _tell(fate: socket.socket, ended_by: int) -> None:
    with fate, suppress(OSError):
        fate.send(bytes([ended_by]))


if __name__ == "__main__":
    main()
