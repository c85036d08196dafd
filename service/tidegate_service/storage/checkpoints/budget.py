"""What the checkpoint of a log may become when it is read."""

from tidegate_service.storage.checkpoints.errors import TooLarge
from tidegate_service.storage.limits import CHECKPOINT_LIMITS, CheckpointLimits


class Budget:
    """What the checkpoint files of a log may become, all that are read of it together."""

    def __init__(
        self, limits: CheckpointLimits = CHECKPOINT_LIMITS, *, left: int | None = None
    ) -> None:
        """With `left`, that is what is left of it."""
        self.limits = limits
        self.left = limits.free_bytes if left is None else left
        self._to_grant = limits.bytes - limits.free_bytes

    def grant(self, file_bytes: int) -> None:
        """One more file is read, which takes so much where it is stored."""
        granted = min(self.limits.ratio * file_bytes, self._to_grant)
        self._to_grant -= granted
        self.left += granted

    def take(self, size: int) -> None:
        """Raises `TooLarge` where it was granted no more."""
        self.left -= size
        if self.left < 0:
            most = self.limits
            raise TooLarge(
                f"what is in it is more than {most.ratio} times as large as the checkpoint's "
                f"files, beyond {most.free_bytes} bytes, or more than {most.bytes} bytes"
            )
