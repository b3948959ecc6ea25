import json
import re
import xml.etree.ElementTree as ET
import zlib
from base64 import b64decode, b64encode
from hashlib import sha256

import pytest

from evaluators import evaluate_saved
from evaluators.errors import RunError
from evaluators.ledger import Budget
from evaluators.marks import place
from evaluators.reports import files
from evaluators.summary import STATUSES, viewed
from tests.evaluators.judge import FAITHFUL, KIND, Judge, verdict
from tests.evaluators.records import assistant, captured, pairs, spec, user

HOSTILE = "<script>alert(1)</script>&\x00\x0b\ufffe]]>"


def written(run, name, **options):
    evaluate_saved(run, spec(**options))
    with viewed(run) as view:
        files.write(view, run / "out")
    return (run / "out" / name).read_text(encoding="utf-8")


def unpacked(page):
    """Every answer that the page can show, in order."""
    packed = re.findall(r'<script type="text/plain" id="block-\d+">([^<]*)</script>', page)
    return [answer for block in packed for answer in json.loads(zlib.decompress(b64decode(block)))]


def index(page):
    return json.loads(re.search(r'id="index">([^<]*)</script>', page)[1])


def test_junit_tells_violated_met_skipped_and_unavailable_apart(tmp_path):
    answers = ["5 mg", "9 mg [7]", "none", "about 5 mg"]
    run = captured(tmp_path, [user(), *map(assistant, answers)])

    suite = ET.fromstring(written(run, "junit.xml"))[0]

    kinds = [[(child.tag, child.get("message")) for child in case] for case in suite]
    assert kinds == [
        [],
        [("failure", "violated")],
        [("skipped", "not_applicable")],
        [("error", "needs_review")],
        [("failure", "fail")],
    ]
    assert suite[1][0].text == "unmatched quantity: 9 mg\nunresolved citation: 7 in [7]"
    assert suite.attrib == {
        "name": "checks r1",
        "tests": "5",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }


@pytest.mark.parametrize(("qualification", "tag"), [("draft", ["error"]), ("reviewed", [])])
def test_junit_is_not_green_for_a_draft(tmp_path, qualification, tag):
    run = captured(tmp_path, [user(), assistant("5 mg")])

    suite = ET.fromstring(written(run, "junit.xml", qualification=qualification))[0]

    assert suite[-1].get("name") == "release policy"
    assert [child.tag for child in suite[-1]] == tag


def test_junit_is_xml_whatever_names_hold(tmp_path):
    run = captured(tmp_path, [user(), assistant("9 mg", case_id=HOSTILE)])

    suite = ET.fromstring(written(run, "junit.xml"))[0]

    assert suite[0].get("name") == "<script>alert(1)</script>&\ufffd\ufffd\ufffd]]>"


def test_junit_keeps_line_ends_in_names(tmp_path):
    run = captured(tmp_path, [user(), assistant("9 mg", case_id="a\n\t'b\"")])

    suite = ET.fromstring(written(run, "junit.xml"))[0]

    assert suite[0].get("name") == "a\n\t'b\""


def test_markdown_lists_what_was_violated(tmp_path):
    run = captured(tmp_path, [user(), assistant("5 mg"), assistant("9 mg", case_id="the|case")])

    text = written(run, "summary.md")

    assert text.startswith("## checks: fail\n")
    assert "| violated | 1 |" in text
    assert "- the\\|case (traceability): unmatched quantity: 9 mg\n" in text


def test_markdown_lists_twenty_violations_and_counts_the_rest(tmp_path):
    run = captured(tmp_path, pairs(23, "9 mg"))

    text = written(run, "summary.md")

    assert text.count("(traceability)") == 20
    assert text.endswith("- and 3 more\n")


def test_the_page_allows_its_own_script_and_style_only(tmp_path):
    page = written(captured(tmp_path, [user(), assistant()]), "report.html")

    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for name, text in (
        ("script-src", re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]),
        ("style-src", re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]),
    ):
        expected = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{expected}'" in policy
    assert policy.startswith("default-src 'none';")


def test_the_page_escapes_everything_that_was_captured(tmp_path):
    context = {"passages": [{"id": HOSTILE, "text": f"{HOSTILE} 5 mg"}]}
    answer = assistant(f"{HOSTILE} 5 mg [1]", context, case_id=HOSTILE, tags=[HOSTILE])
    page = written(captured(tmp_path, [user(HOSTILE), answer]), "report.html")

    assert "<script>alert" not in page
    assert "<script>alert" not in "".join(unpacked(page))


def test_a_supported_value_and_its_passage_lead_to_each_other(tmp_path):
    answer = assistant("x5 mg or 5 mg [1].", {"passages": ["Take 15 mg or 5 mg."]})
    page = written(captured(tmp_path, [user(), answer]), "report.html")

    (shown,) = unpacked(page)

    assert (
        '<a id="c0-a9" class="source" title="source: passage:1" href="#c0-passage-1-14">5 mg</a>'
        in shown
    )
    assert (
        '<a id="c0-passage-1-14" class="support" title="supports the answer" '
        'href="#c0-a9">5 mg</a>' in shown
    )
    assert 'title="passage:1" href="#c0-passage-1">[1]</a>' in shown
    assert '<li id="c0-passage-1">' in shown


def test_a_value_of_the_question_leads_to_the_question(tmp_path):
    page = written(captured(tmp_path, [user("Is 7 mg right?"), assistant("7 mg")]), "report.html")

    (shown,) = unpacked(page)

    assert 'class="question" title="question: turn:0" href="#c0-turn-0-3">7 mg</a>' in shown


@pytest.mark.parametrize(
    ("answer", "marked"),
    [
        ("9 mg", '<mark id="c0-a0" class="unmatched" title="unmatched">9 mg</mark>'),
        ("~5 mg", '<mark id="c0-a0" class="ambiguous" title="ambiguous">~5 mg</mark>'),
        ("[2]", '<mark id="c0-a0" class="unresolved" title="no passage 2">[2]</mark>'),
    ],
)
def test_what_has_no_support_is_marked_and_named(tmp_path, answer, marked):
    (shown,) = unpacked(written(captured(tmp_path, [user(), assistant(answer)]), "report.html"))

    assert marked in shown


def test_the_page_holds_every_answer_in_order_with_its_status(tmp_path):
    records = [*pairs(130), user(session="t"), assistant("9 mg", session="t")]
    page = written(captured(tmp_path, records), "report.html")

    names = [STATUSES[int(status)] for status in index(page)["statuses"]]

    assert names == ["met"] * 130 + ["violated"]
    assert len(unpacked(page)) == 131
    assert "t:0" in unpacked(page)[-1]
    assert page.split("</main>")[0].count("<article") == 25


def test_an_answer_without_evidence_is_shown_with_the_reason(tmp_path):
    page = written(captured(tmp_path, [user(), assistant("5 mg", context=None)]), "report.html")

    (shown,) = unpacked(page)

    assert "there is no context" in shown
    assert "5 mg" in shown


def test_reports_replace_nothing_unless_told(tmp_path):
    run = captured(tmp_path, [user(), assistant()])
    written(run, "summary.md")

    with viewed(run) as view:
        with pytest.raises(RunError, match="--force"):
            files.write(view, run / "out")
        assert len(files.write(view, run / "out", force=True)) == 3


@pytest.mark.parametrize(
    ("text", "quote", "begin", "found"),
    [
        ("15 mg, 5 mg", "5 mg", 0, 7),
        ("5 mgs, 5 mg", "5 mg", 0, 7),
        (".5 mg 5 mg", "5 mg", 0, 6),
        ("5 mg. Then", "5 mg", 0, 0),
        ("5 mg 5 mg", "5 mg", 1, 5),
        ("a[1]", "[1]", 0, 1),
        ("15 mg", "5 mg", 0, 1),
        ("none", "5 mg", 0, -1),
    ],
)
def test_a_quote_is_placed_where_it_stands_whole(text, quote, begin, found):
    assert place(text, quote, begin) == found


def test_a_judged_answer_shows_its_claims_their_support_and_the_reasons(tmp_path):
    claims = [
        {
            "text": "Take 5 mg",
            "status": "supported",
            "evidence": [{"source_id": "passage:1", "quote": "Take 5 mg for 3 days."}],
        },
        {"text": "Sing & dance", "status": "unsupported", "evidence": []},
    ]
    judge = Judge(lambda payload: verdict(payload, claims=claims, correctness=4))
    run = captured(tmp_path, [user(), assistant("Take 5 mg. Sing & dance.")])
    evaluate_saved(run, spec(FAITHFUL), judge=judge, budget=Budget(5))
    with viewed(run) as view:
        files.write(view, run / "out")

    (shown,) = unpacked((run / "out" / "report.html").read_text())

    assert (
        '<a id="c0-a0" class="supported" title="supported: passage:1" '
        'href="#c0-passage-1-0">Take 5 mg</a>' in shown
    )
    assert 'class="unsupported" title="unsupported">Sing &amp; dance</mark>' in shown
    assert "<li>unsupported claim: Sing &amp; dance</li>" in shown
    assert "<li>correctness 4 of 10, at least 7 is wanted</li>" in shown
    assert "<p>The passage says so.</p>" in shown
    assert "unsupported claim: Sing" in (run / "out" / "summary.md").read_text()
    assert "unsupported claim: Sing" in (run / "out" / "junit.xml").read_text()


def test_a_rubric_shows_what_the_judge_quotes_and_says(tmp_path):
    run = captured(tmp_path, [user(), assistant("Take 5 mg.", context=None)])
    evaluate_saved(run, spec(KIND), judge=Judge(), budget=Budget(5))
    with viewed(run) as view:
        files.write(view, run / "out")

    (shown,) = unpacked((run / "out" / "report.html").read_text())

    assert 'class="support" title="quoted by the judge">Take 5 mg.</mark>' in shown
    assert "<p>It is.</p>" in shown
