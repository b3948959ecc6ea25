"""The version that is frozen with a run and an evaluation."""

PACKAGE_VERSION = "0.1.0"
"""That of the distribution, mesedi-server; a test keeps the two alike.

Reading it from the installed metadata would cost a tenth of a second at every start, and would be
wrong in a checkout.
"""

EVALUATOR_REVISION = "v1"
"""Of each evaluator of our own; raised when the same answer may come out differently."""
