"""Playbooks: what to do about a class of failures, from the package's Markdown to HTML."""

from functools import cache
from importlib import resources

from markdown_it import MarkdownIt
from markupsafe import Markup


@cache
def playbook(failure_class: str) -> Markup | None:
    """Return the playbook of a failure class, None where none is written."""
    source = resources.files("mesedi_server.playbooks").joinpath(f"{failure_class}.md")
    if not source.is_file():
        return None
    reader = MarkdownIt("commonmark", {"html": False})
    tokens = reader.parse(source.read_text(encoding="utf-8"))
    for token in tokens:
        # On the page a playbook stands below the page's own heading.
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{int(token.tag[1:]) + 1}"
    html = reader.renderer.render(tokens, reader.options, {})
    return Markup(html)  # noqa: S704 - made of our own text, with HTML in it switched off
