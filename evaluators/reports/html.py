"""One HTML file: every answer beside its passages, each finding linked to its support.

The file needs nothing else and asks nobody. Answers are rendered here, packed by the hundred
(zlib, base64) and unpacked by the page as it is turned, so that fifty thousand open as fast as
twenty. The first page is there without script.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from html import escape
from itertools import islice
from pathlib import Path
from typing import TextIO

from evaluators.marks import Mark, Marks
from evaluators.report_objects import input_json
from evaluators.reports import findings, release
from evaluators.reports.judgments import explanation
from evaluators.reports.tables import table
from evaluators.reports.text import measured, would_pass
from evaluators.store.evaluations import Case
from evaluators.summary import STATUSES, Json, View

_LEGEND = (
    '<p>Marked: <mark class="source">in a passage</mark> '
    '<mark class="question">in the question</mark> '
    '<mark class="unmatched">without support</mark> '
    '<mark class="ambiguous">needs a reader</mark></p>'
)
PAGE = 25
BLOCK = 100


def write(view: View, summary: Json, out: TextIO) -> None:
    """Write the page."""
    style, script = _asset("report.css"), _asset("report.js")
    # One digit an answer: there are ten statuses.
    statuses = [STATUSES.index(_status(case)) for case in view.cases(texts=False)]
    fragments = _fragments(view)
    first_block = list(islice(fragments, BLOCK))
    out.write(_head(summary, style, script))
    out.write(_overview(summary))
    out.write(_filters(summary))
    out.write('<main id="answers" tabindex="-1" aria-live="polite">\n')
    out.writelines(first_block[:PAGE])
    out.write("</main>\n")
    index = {"page": PAGE, "block": BLOCK, "names": STATUSES}
    out.write(_data("index", json.dumps({**index, "statuses": "".join(map(str, statuses))})))
    out.write(f"<script>{script}</script>\n")
    blocks = enumerate(_blocks(first_block, fragments))
    out.writelines(_data(f"block-{number}", _packed(block)) for number, block in blocks)
    out.write("</body>\n</html>\n")


def _status(case: Case) -> str:
    return "pending" if case.result is None else str(case.result["status"])


def _fragments(view: View) -> Iterator[str]:
    return (_article(view, case) for case in view.cases())


def _blocks(first: list[str], rest: Iterator[str]) -> Iterator[list[str]]:
    block = first
    while block:
        yield block
        block = list(islice(rest, BLOCK))


def _packed(block: list[str]) -> str:
    return b64encode(zlib.compress(json.dumps(block).encode())).decode()


def _asset(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _data(name: str, text: str) -> str:
    # Neither base64 nor our index can hold a `<`.
    return f'<script type="text/plain" id="{name}">{text}</script>\n'


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _head(summary: Json, style: str, script: str) -> str:
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    title = escape(f"{summary['spec']['id']}: {release.decision(summary)}")
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
    )


def _overview(summary: Json) -> str:
    spec = summary["spec"]
    qualification = escape(spec.get("qualification", "draft"))
    decision = release.decision(summary)
    why = (
        "<p>Nothing was violated, but a draft spec cannot pass.</p>" if would_pass(summary) else ""
    )
    return (
        f"<header>\n<h1>{escape(spec['id'])} "
        f'<span class="badge {decision}">{decision}</span></h1>\n'
        f"{why}<p>Revision {escape(spec['revision'])}, {qualification}. "
        f"{summary['judged']} of {summary['applicable']} applicable answers judged, "
        f"{summary['unavailable']} unavailable. "
        f"Evaluation <code>{escape(summary['evaluation_id'])}</code>.</p>\n"
        f"{release.html(summary)}{_metrics(summary['metrics'])}{_groups(summary)}{_LEGEND}</header>\n"
    )


def _metrics(entries: Json) -> str:
    rows = "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{escape(measured(entry))}</td>"
        f"<td>{escape(entry['description'])}</td></tr>"
        for name, entry in entries.items()
    )
    return table("Metrics", rows)


def _groups(summary: Json) -> str:
    rows = "".join(
        f"<tr><td>{kind}</td><th scope=row>{escape(name)}</th><td>{group['decision']}</td>"
        f"<td>{group['planned']}</td><td>{group['counts'].get('violated', 0)}</td>"
        f"<td>{group['unavailable']}</td></tr>"
        for kind in ("criteria", "streams", "tags", "personas")
        for name, group in summary[kind].items()
    )
    head = "".join(
        f"<th scope=col>{name}</th>"
        for name in ("Kind", "Group", "Decision", "Answers", "Violated", "Unavailable")
    )
    found = table("Criteria, streams, tags, personas", f"<tr>{head}</tr>{rows}")
    return f"<details><summary>By group</summary>{found}</details>\n"


def _filters(summary: Json) -> str:
    buttons = "".join(
        f'<button type="button" data-outcome="{STATUSES.index(status)}" aria-pressed="false">'
        f"{status} <b>{count}</b></button>"
        for status, count in summary["counts"].items()
    )
    return (
        '<nav aria-label="Answers">\n<noscript><p>Without script, only the first '
        f"{PAGE} answers are shown.</p></noscript>\n"
        '<p id="filters" hidden><button type="button" data-outcome="" aria-pressed="true">all '
        f"<b>{summary['planned']}</b></button>{buttons}</p>\n"
        '<p id="pager" hidden><button type="button" data-turn="first">First</button>'
        '<button type="button" data-turn="previous">Previous</button>'
        '<span id="where" role="status"></span>'
        '<button type="button" data-turn="next">Next</button>'
        '<button type="button" data-turn="last">Last</button></p>\n</nav>\n'
    )


# One answer


def _article(view: View, case: Case) -> str:
    shown = input_json(view, case)
    status = _status(case)
    reason = (case.result or {}).get("reason")
    tags = "".join(f' <span class="tag">{escape(tag)}</span>' for tag in case.tags)
    return (
        f'<article id="c{case.number}">\n<h2>{escape(case.case_id)} '
        f'<span class="badge {status}">{status}</span></h2>\n'
        f"<p>{escape(case.input.criterion_id)}, {case.input.stream} turn "
        f"{case.input.ordinal}{tags}</p>\n"
        f"{f'<p>{escape(reason)}</p>' if reason else ''}"
        f"{_sides(case, shown['data'])}</article>\n"
    )


def _sides(case: Case, data: Json | None) -> str:
    if data is None:
        return ""
    result = case.result or {}
    marks = findings.marks(case.number, data, result)
    faults = "".join(f"<li>{escape(line)}</li>" for line in findings.complaints(result))
    words = explanation(result)
    return (
        f'<div class="sides"><section><h3>Question</h3>{_question(data, marks)}'
        f"<h3>Answer</h3>{_text(data['answer'], marks.answer)}"
        f"{f'<ul>{faults}</ul>' if faults else ''}{f'<p>{escape(words)}</p>' if words else ''}"
        "</section>\n"
        f"<section><h3>Passages</h3>{_passages(data, marks)}</section></div>"
    )


def _question(data: Json, marks: Marks) -> str:
    source_id = data["question_source_id"]
    if source_id is None:
        return "<p>none</p>"
    text = _text(data["question"], marks.sources.get(source_id, ()))
    return f'<div id="{escape(marks.source_anchor(source_id))}">{text}</div>'


def _passages(data: Json, marks: Marks) -> str:
    if not data["passages"]:
        return "<p>none</p>"
    items = "".join(
        f'<li id="{escape(marks.source_anchor(passage["source_id"]))}">'
        f"{_provider(passage['provider_id'])}"
        f"{_text(passage['text'], marks.sources.get(passage['source_id'], ()))}</li>"
        for passage in data["passages"]
    )
    return f"<ol>{items}</ol>"


def _provider(provider_id: str | None) -> str:
    return "" if provider_id is None else f"<small>{escape(provider_id)}</small>"


def _text(text: str, marks: Iterable[Mark]) -> str:
    parts, end = [], 0
    for mark in marks:
        if mark.begin < end:
            continue
        parts += [escape(text[end : mark.begin]), _marked(text, mark)]
        end = mark.end
    return f'<p class="text">{"".join(parts)}{escape(text[end:])}</p>'


def _marked(text: str, mark: Mark) -> str:
    words = escape(text[mark.begin : mark.end])
    head = f'id="{escape(mark.id)}" class="{mark.status}" title="{escape(mark.title)}"'
    if mark.target is None:
        return f"<mark {head}>{words}</mark>"
    return f'<a {head} href="#{escape(mark.target)}">{words}</a>'
