"""JUnit XML: one test case an input, and one for the decision.

violated is a failure, met passes, not_applicable is skipped; whatever could not be judged is an
error, since a build must not look green because nothing was checked.
"""

import re
from html import escape
from typing import TextIO

from evaluators.reports import release
from evaluators.reports.findings import complaints
from evaluators.reports.text import would_pass
from evaluators.store.evaluations import Case
from evaluators.summary import Json, View

# Compiled by its first use: so big a set takes a tenth of the start-up time of every command.
_NOT_XML = "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_DECISION_TAGS = {"pass": None, "fail": "failure", "inconclusive": "error"}


def write(view: View, summary: Json, out: TextIO) -> None:
    """Write an evaluation as one test suite."""
    counts = summary["counts"]
    failures = counts.get("violated", 0)
    skipped = counts.get("not_applicable", 0)
    errors = summary["planned"] - failures - skipped - counts.get("met", 0)
    decided = _DECISION_TAGS[release.decision(summary)]
    spec = summary["spec"]
    out.write('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n')
    out.write(
        f"<testsuite name={_attribute(spec['id'] + ' ' + spec['revision'])} "
        f'tests="{summary["planned"] + 1}" failures="{failures + (decided == "failure")}" '
        f'errors="{errors + (decided == "error")}" skipped="{skipped}">\n'
    )
    out.writelines(
        _test_case(case.input.criterion_id, case.case_id, *_outcome(case))
        for case in view.cases(texts=False)
    )
    out.write(_test_case("decision", "release policy", decided, *_decision(summary)))
    out.write("</testsuite>\n</testsuites>\n")


def _outcome(case: Case) -> tuple[str | None, str, str]:
    result = case.result
    if result is None:
        return "error", "pending: not evaluated yet", ""
    status, reason = result["status"], result.get("reason")
    if status == "met":
        return None, "", ""
    message = f"{status}: {reason}" if reason else status
    if status == "not_applicable":
        return "skipped", message, ""
    tag = "failure" if status == "violated" else "error"
    return tag, message, "\n".join(complaints(result))


def _decision(summary: Json) -> tuple[str, str]:
    message, decided = release.decision(summary), summary["decision"]
    if decided == message and would_pass(summary):
        message = "inconclusive: a draft spec cannot pass"
    return message, "\n".join(release.lines(summary))


def _test_case(suite: str, name: str, tag: str | None, message: str, text: str) -> str:
    head = f"<testcase classname={_attribute(suite)} name={_attribute(name)}"
    if tag is None:
        return f"{head}/>\n"
    inner = f"<{tag} message={_attribute(message)}>{_escaped(text)}</{tag}>"
    return f"{head}>{inner}</testcase>\n"


def _attribute(text: str) -> str:
    # XML would read a line end or tab in an attribute as a space.
    quoted = re.sub(r"[\t\n\r]", lambda white: f"&#{ord(white[0])};", _escaped(text))
    return f'"{quoted}"'


def _escaped(text: str) -> str:
    return escape(re.sub(_NOT_XML, "\ufffd", text))
