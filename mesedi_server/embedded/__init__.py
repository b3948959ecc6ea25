"""The PostgreSQL and the Valkey that `mesedi-server up` brings along.

They are what production uses, as child processes on unix sockets in the data folder, so that one
command starts everything and development, tests and production run the same SQL.
"""

from mesedi_server.embedded.errors import EmbeddedError, FolderInUseError
from mesedi_server.embedded.folder import Addresses
from mesedi_server.embedded.servers import EmbeddedServers, connect_addresses, reach_database

__all__ = [
    "Addresses",
    "EmbeddedError",
    "EmbeddedServers",
    "FolderInUseError",
    "connect_addresses",
    "reach_database",
]
