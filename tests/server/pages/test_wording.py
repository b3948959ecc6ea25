"""Facts in words."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest

from detectors import DETECTORS
from mesedi_server import examination
from mesedi_server.pages import wording
from mesedi_server.pages.playbooks import playbook
from mesedi_server.tasks.assess import assess_all
from tests.factories import make_score
from tests.server.assessments.answering import make_answer
from tests.server.pages.failing import fail

ONE_OF_MANY = re.compile(r"(?<![\w.,:/-])1 (?!(?:is|was|has|needs|means)\b)[a-z]+s\b[^.]{0,20}")


def below_floor(mean: float, floor: float, **more) -> dict:
    plain = {"rule": "mean_below_floor", "mean": mean, "floor": floor, "measured": 4}
    return plain | {"floor_source": "default"} | more


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        (below_floor(0.31, 0.5), "mean 0.31 over 4 scores, floor 0.50 (default)"),
        (
            below_floor(0.31, 0.6, floor_source="project", measured=1),
            "mean 0.31 over 1 score, floor 0.60 (set by this project)",
        ),
        (
            below_floor(0.31, 0.6, floor_source="per_evaluator", unmeasured=2),
            "mean 0.31 over 4 scores, 2 unmeasured, floor 0.60 (set for this pair)",
        ),
        (below_floor(0.4999, 0.5), "mean 0.4999 over 4 scores, floor 0.5000 (default)"),
        (below_floor(0.4996, 0.5), "mean 0.4996 over 4 scores, floor 0.5000 (default)"),
        (below_floor(0.5, 0.5), "mean just under 0.50 over 4 scores, floor 0.50 (default)"),
        (below_floor(-1e308, 0.5), "mean -1e+308 over 4 scores, floor 0.50 (default)"),
        (
            {"rule": "failed_verdict", "failed_verdicts": 1, "scores": 4, "mean": 0.95},
            "failed by the evaluator's own verdict (1 of 4 scores), mean 0.95",
        ),
        (
            {"rule": "failed_verdict", "failed_verdicts": 1, "scores": 1, "mean": None},
            "failed by the evaluator's own verdict (1 of 1 score), no score measured",
        ),
        (
            {"rule": "failed_verdict", "scores": 1, "mean": 0.1, "higher_is_better": False},
            "failed by the evaluator's own verdict (0 of 1 score), mean 0.10 (lower is better)",
        ),
        ({"rule": "failed_check", "failures": 1}, "the check said no once"),
        ({"rule": "failed_check", "failures": 2}, "the check said no twice"),
        ({"rule": "failed_check", "failures": 1200}, "the check said no 1,200 times"),
        (
            {"rule": "explicit", "wait_duration_ms": 65_000},
            "nobody answered; the client gave up after 65.0 s",
        ),
        (
            {"rule": "sla_exceeded", "wait_duration_ms": 5_400_000, "sla_seconds": 3600},
            "the answer took 90.0 min, agreed were 60.0 min",
        ),
        ({"rule": "crashed"}, "the execution crashed"),
        (
            {
                "rule": "edited",
                "executions": 2,
                "sample": 5,
                "rate": 0.4,
                "rate_threshold": 0.3,
                "measurement_window_minutes": 60,
            },
            "people rewrote 2 of 5 executions (40%) within 60 min; a spike begins at 30%",
        ),
        ({"rule": "a rule of tomorrow"}, "a rule of tomorrow"),
        ({}, ""),
    ],
)
def test_every_rule_is_a_sentence(evidence, sentence):
    assert wording.why(evidence) == sentence


def test_the_metric_stands_in_its_sentence_isolated():
    sentence = wording.why(below_floor(0.31, 0.5), "faithful")

    assert sentence.startswith("mean \u2068faithful\u2069 0.31 over")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, wording.NOTHING),
        (0.0, "0.00"),
        (0.005, "0.005"),
        (0.125, "0.12"),
        (1, "1.00"),
        (22.875, "22.88"),
        (1e6, "1e+06"),
        (-4, "-4.00"),
    ],
)
def test_a_number_has_the_digits_that_say_something(value, text):
    assert wording.number(value) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, wording.NOTHING),
        (0, "0 ms"),
        (913, "913 ms"),
        (1000, "1.0 s"),
        (119_000, "119.0 s"),
        (120_000, "2.0 min"),
        (7_200_000, "2.0 h"),
        (172_800_000, "2.0 d"),
    ],
)
def test_a_time_span_is_in_the_unit_that_people_use(ms, text):
    assert wording.duration(ms) == text


def test_the_exact_time_is_utc():
    at = datetime(2026, 12, 1, 1, 30, 0, 5000, timezone(timedelta(hours=14)))

    assert wording.iso(at) == "2026-11-30T11:30:00.005Z"
    assert wording.iso(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000Z"


def test_a_long_payload_is_one_short_line():
    assert wording.gist('{\n  "a": 1\n}') == '{ "a": 1 }'
    assert wording.gist("x" * 500) == "x" * 100 + "…"


@pytest.mark.parametrize("failure_class", sorted({*examination.CLASSES, *DETECTORS}))
def test_every_failure_class_has_a_playbook_below_the_pages_heading(failure_class):
    html = playbook(failure_class)

    assert html.startswith("<h2>")
    assert "<h1" not in html
    assert "ot worth a look" in html or "When not to investigate" in html


@pytest.mark.parametrize("failure_class", sorted({*examination.CLASSES, *DETECTORS}))
def test_a_playbook_says_nothing_of_where_the_executions_stand(failure_class):
    # On a wide screen they stand beside it, on a narrow one below.
    assert not re.search(r"executions?\s+(below|above|beside|to the left)", playbook(failure_class))


def test_a_class_without_a_playbook_has_none():
    assert playbook("drift") is None


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "\N{EN DASH}"),
        (0, 7, "0 %"),
        (1, 1000, "<1 %"),
        (1, 100, "1 %"),
        (1, 3, "33 %"),
        (999, 1000, ">99 %"),
        (1000, 1000, "100 %"),
    ],
)
def test_a_share_rounds_neither_something_to_none_nor_much_to_all(part, whole, text):
    assert wording.share(part, whole) == text


def test_evidence_leaves_out_what_is_said_already():
    facts = {
        "rule": "mean_below_floor",
        "mean": 0.3,
        "mean_exact": "3/10",
        "measured": 1200,
        "higher_is_better": True,
        "reasons": ["no"],
        "floor_source": "default",
        "absent": None,
        "signatures": ["a", 1],
    }

    assert wording.evidence(facts) == [
        ("mean", "0.30"),
        ("measured", "1,200"),
        ("higher is better", "yes"),
        ("floor source", "default"),
        ("signatures", "a, 1"),
    ]


def test_no_page_counts_one_thing_as_many(staff, tenant, database):
    answer = make_answer("Take 6 mg [7].")
    group = fail(tenant, database, "exec-1", make_score(0.2), answer, environment="1")
    assess_all(database)
    browser = staff.browser("admin")

    groups = ["groups", f"groups/{group}", f"groups/{group}?finding=unmatched"]
    settings = ["settings", "settings/keys", "settings/members", "settings/judge"]
    for path in [
        *groups,
        "executions",
        "executions/exec-1",
        "thresholds/grounding_failure",
        *settings,
    ]:
        text = browser.open(f"/p/{tenant.project.project_id}/{path}").text
        assert ONE_OF_MANY.findall(text) == [], path
