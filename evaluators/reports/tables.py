"""Tables of the HTML report."""


def table(caption: str, rows: str) -> str:
    """Return a table that scrolls by itself where the window is narrower."""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}">'
        f"<table><caption>{caption}</caption>{rows}</table></div>\n"
    )
