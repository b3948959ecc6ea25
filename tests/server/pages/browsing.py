"""A browser without script: it keeps cookies, reads pages, fills in forms and sends them."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

from flask import Flask
from werkzeug.test import Client, TestResponse

_EMPTY = {"meta", "link", "input", "br", "img", "hr"}
_INLINE = {"a", "bdi", "code", "span", "strong", "time"}


@dataclass
class Form:
    """A form as it stands on a page; `buttons` maps what is written on one to what it sends."""

    action: str
    method: str
    enctype: str = "application/x-www-form-urlencoded"
    fields: list[tuple[str, str]] = field(default_factory=list)
    buttons: dict[str, dict[str, str]] = field(default_factory=dict)

    def filled(self, button: str, changes: dict[str, str | list[str]]) -> list[tuple[str, str]]:
        """What a browser sends: the fields with some of them changed, and the button."""
        kept = [(name, value) for name, value in self.fields if name not in changes]
        for name, value in changes.items():
            kept += [(name, one) for one in ([value] if isinstance(value, str) else value)]
        name = self.buttons[button].get("name")
        return kept if name is None else [*kept, (name, self.buttons[button].get("value", ""))]


class Page(HTMLParser):
    """What is on a page."""

    def __init__(self, response: TestResponse) -> None:
        super().__init__()
        self.status = response.status_code
        self.headers = response.headers
        self.html = response.get_data(as_text=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self.names: list[str] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._texts: list[str] = []
        self._options: list[dict[str, str | None]] = []
        self.feed(self.html)

    @property
    def text(self) -> str:
        """The text, blanks as a person sees them."""
        return " ".join("".join(self._texts).split())

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def form_with(self, button: str) -> Form:
        return next(form for form in self.forms if button in form.buttons)

    def has_button(self, text: str) -> bool:
        return any(text in form.buttons for form in self.forms)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        if tag == "form":
            form = Form(attributes.get("action") or "", attributes.get("method", "get"))
            form.enctype = attributes.get("enctype") or form.enctype
            self.forms.append(form)
        elif tag == "input" and attributes.get("name"):
            self._take_input(attributes)
        elif tag == "select":
            self._options.clear()
        elif tag == "option":
            self._options.append(attributes)
        self._part(tag)
        if tag not in _EMPTY:
            self._open.append((tag, attributes, []))

    def handle_endtag(self, tag: str) -> None:
        self._part(tag)
        opened, attributes, texts = self._open.pop()
        assert opened == tag, f"</{tag}> closes <{opened}>"
        text = " ".join("".join(texts).split())
        if tag == "a":
            self.links[text] = attributes.get("href") or ""
        elif tag == "button":
            label = attributes.get("aria-label") or text
            self.forms[-1].buttons[label] = {k: v or "" for k, v in attributes.items()}
        elif tag == "bdi":
            self.names.append("".join(texts))
        elif tag == "option" and self._options:
            self._options[-1].setdefault("value", text)
        elif tag == "select":
            self._choose(attributes["name"] or "")

    def handle_data(self, data: str) -> None:
        self._texts.append(data)
        for _, _, texts in self._open:
            texts.append(data)

    def _take_input(self, attributes: dict[str, str | None]) -> None:
        if attributes.get("type") != "checkbox" or "checked" in attributes:
            self.forms[-1].fields.append((attributes["name"] or "", attributes.get("value") or ""))

    def _choose(self, name: str) -> None:
        """Take the option that is selected, else the first."""
        chosen = next((o for o in self._options if "selected" in o), self._options[0])
        self.forms[-1].fields.append((name, chosen["value"] or ""))

    def _part(self, tag: str) -> None:
        """Keep the words apart that a browser shows on different lines."""
        if tag not in _INLINE:
            self._texts.append(" ")


@dataclass
class Browser:
    """Visits an application's pages, over TLS if `base` says so."""

    app: Flask
    base: str = "http://localhost"
    client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = self.app.test_client()

    def call(self, method: str, path: str, **more) -> TestResponse:
        """Send one request; redirects are not followed."""
        return self.client.open(path, method=method, base_url=self.base, **more)

    def open(self, path: str) -> Page:
        """Open a page, wherever it leads within this server."""
        return Page(self.client.get(path, base_url=self.base, follow_redirects=True))

    def send(self, form: Form, button: str, **changes: str | list[str]) -> Page:
        """Press a button of a form; `__` in a field's name stands for a dot."""
        named = {name.replace("__", "."): value for name, value in changes.items()}
        pressed = form.filled(button, named)
        action = form.buttons[button].get("formaction") or form.action
        data: dict[str, list[str]] = {}
        for name, value in pressed:
            data.setdefault(name, []).append(value)
        return Page(
            self.client.post(
                action,
                data=data,
                content_type=form.enctype,
                base_url=self.base,
                follow_redirects=True,
            )
        )

    def cookie(self, name: str) -> str | None:
        found = self.client.get_cookie(name, path="/") or self.client.get_cookie(
            name, path="/sign-in"
        )
        return None if found is None else found.value
