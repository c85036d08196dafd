"""Object storage behind one port, through obstore; local files are made durable here."""

from tidegate_service.storage.object_storage import ObjectStorage

__all__ = ["ObjectStorage"]
