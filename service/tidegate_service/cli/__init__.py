"""The command `tidegate`: run the service, look after its database, look at its tables."""

from tidegate_service.cli.commands import main

__all__ = ["main"]
