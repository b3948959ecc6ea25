"""What the SDK may raise: from `configure`, and at halt-safe points of an execution with a budget.

MesediError
├── ConfigurationError (also a ValueError)
└── MesediHalt
"""


class MesediError(Exception):
    """Root of everything the SDK raises on purpose."""


class ConfigurationError(MesediError, ValueError):
    """A setting is missing or cannot be used."""


class MesediHalt(MesediError):  # noqa: N818 - the reference's name
    """The execution has used up its budget, or the server told it to halt.

    `trigger` is `wall_clock`, `step_count`, `token_total` or `remote_signal`; `reason` is what
    the server said.
    """

    def __init__(self, trigger: str, reason: str = "", meter: object = None) -> None:
        super().__init__(f"{trigger}: {reason}" if reason else trigger)
        self.trigger = trigger
        self.reason = reason
        self.meter = meter
        """Whose budget it was."""
