"""One pattern for many phrases: common beginnings are tried once, not once a phrase."""

import re
from collections import defaultdict
from collections.abc import Iterable

_GAP = r"\s*+"


def longest_of(phrases: Iterable[str]) -> str:
    """Write a pattern that matches the longest phrase that fits.

    A space stands for any white space, even none: `upto` is meant as `up to`.
    """
    rests: dict[str, list[str]] = defaultdict(list)
    for phrase in phrases:
        rests[phrase[:1]].append(phrase[1:])
    ends_here = rests.pop("", None) is not None
    branches = [
        (_GAP if first == " " else re.escape(first)) + longest_of(rest)
        for first, rest in rests.items()
    ]
    if len(branches) == 1 and not ends_here:
        return branches[0]
    choice = f"(?:{'|'.join(branches)})" if branches else ""
    return f"{choice}?" if choice and ends_here else choice
