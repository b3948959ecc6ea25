"""What the SDK may raise, and only from `configure`.

MesediError
└── ConfigurationError (also a ValueError)
"""


class MesediError(Exception):
    """Root of everything the SDK raises on purpose."""


class ConfigurationError(MesediError, ValueError):
    """A setting is missing or cannot be used."""
