"""The characters that the grammar tells apart: the insides of character classes, and white space.

A set with a hyphen begins with it, and so must a class that uses the set. Of white space, a line may
be wrapped, but a paragraph ends everything.
"""

_BREAKS = r"\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"

BLANKS = rf"[^\S{_BREAKS}]*+"
"""White space within a line, possibly none."""

GAP = rf"{BLANKS}(?:(?:\r\n|[{_BREAKS}]){BLANKS})?+"
"""White space with at most one line break, possibly none."""

MIRRORED_GAP = rf"{BLANKS}(?:(?:\n\r|[{_BREAKS}]){BLANKS})?+"
"""GAP, read from right to left."""

GROUP_SPACES = " \u00a0\u2007\u2009\u202f"
"""Spaces that may part groups of digits."""

MINUS = "\u2212"

SIGNS = f"-+{MINUS}"
"""Signs, when nothing but a number follows and no word comes before."""

RANGE_DASHES = "-\u2013\u2014"
"""Hyphen, en dash, em dash: what joins the ends of a range."""

ODD_DASHES = f"{MINUS}\u2010\u2011\u2012\u2015\ufe63\uff0d"
"""Dashes that join numbers, but not in a supported way."""

SHORT_DASHES = f"{MINUS}\u2010\u2011\u2012\u2013\u2015\ufe63\uff0d"
"""Dashes that can be meant as a minus; an em dash is punctuation."""

SLASHES = "/\u2044\u2215"

GROUPERS = f".,{SLASHES}'\u2019\u00b4`:\u00b7\u22c5\u066b\u066c\uff0e\uff0c"
"""Marks that, with digits on both sides, belong to a number of some notation."""

MIDDLE_DOTS = "\u00b7\u22c5\u2219"

TIMES = "\u00d7xX*\u00b7\u22c5"

FRACTIONS = "¼½¾⅓⅔⅛⅜⅝⅞"

SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"

PLUS_MINUS = "±∓"

HEDGES = "≈≃≅\u223c"

BOUNDS = "≤≥≦≧⩽⩾≪≫≠"

WAVES = "~〜\uff5e\u223c…"
"""Marks between numbers that can mean a range."""
