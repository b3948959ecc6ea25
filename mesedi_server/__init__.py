"""The server: ingest, detection, pages."""

__version__ = "0.1.0"
