"""The SDK's own version; it is independent of the server's."""

__version__ = "0.1.0"
