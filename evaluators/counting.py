"""Numbers of things, as sentences say them."""


def counted(amount: int, singular: str, plural: str = "") -> str:
    """Write a number of things: `1 answer`, `1,200 answers`; without a plural an s is added."""
    return f"{amount:,} {singular if amount == 1 else plural or singular + 's'}"
