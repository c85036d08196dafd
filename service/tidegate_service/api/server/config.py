"""What the connections of a server share."""

import uvicorn

from tidegate_service.api.http.deadlines import Deadlines
from tidegate_service.api.server.connections import Connections
from tidegate_service.api.server.sliced_reads import Slices


class ServerConfig(uvicorn.Config):
    """uvicorn's, and the bounds and deadlines that the connections of a server share."""

    connections: Connections
    heads: Deadlines
    rests: Deadlines
    silences: Deadlines
    slices: Slices
