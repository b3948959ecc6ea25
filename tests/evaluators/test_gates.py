import json
import re
from xml.etree import ElementTree as ET

import pytest

from evaluators import evaluate_saved, evaluation_summary, gates
from evaluators.errors import SpecError
from tests.evaluators.records import assistant, captured, spec, user
from tests.evaluators.test_comparison import MET, SILENT, UNSURE, VIOLATED, compared, evaluated

GATE = {
    "id": "traced",
    "metric": "grounding.quantity_traceability",
    "operator": "at_least",
    "threshold": 1,
}


def policy(*metric_gates, regressions=()):
    return gates.from_json(
        {
            "id": "release",
            "revision": "1",
            "metric_gates": list(metric_gates),
            "regression_gates": list(regressions),
        }
    )


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({}, "pass"),
        ({"threshold": 1.01}, "fail"),
        ({"operator": "at_most", "threshold": 0.5}, "fail"),
        ({"min_denominator": 3}, "pass"),
        ({"min_denominator": 4}, "inconclusive"),
        ({"metric": "evaluation.met_rate"}, "pass"),
        ({"metric": "evaluation.coverage", "min_denominator": 4}, "inconclusive"),
        ({"criterion": "traceability"}, "pass"),
        ({"tag": "vip"}, "pass"),
        ({"tag": "quiet"}, "inconclusive"),
        ({"metric": "grounding.ambiguous_quantities", "operator": "at_most"}, "pass"),
    ],
)
def test_a_metric_gate_limits_a_metric(tmp_path, changes, decision):
    tagged = {"tags": ["vip"], "session": "b", "case_id": "b"}
    quiet = assistant(SILENT, tags=["quiet"], session="c", case_id="c")
    run = evaluated(tmp_path, {"a": "5 mg, 3 days", "b": assistant(MET, **tagged), "c": quiet})

    release = gates.release(evaluation_summary(run), policy({**GATE, **changes}))

    assert release["gates"][0]["decision"] == decision
    assert release["decision"] == decision


@pytest.mark.parametrize(
    ("answers", "gate", "decision"),
    [
        ({"a": VIOLATED, "b": MET}, {"threshold": 0.5}, "fail"),
        ({"a": UNSURE, "b": MET}, {"threshold": 0.5}, "inconclusive"),
        ({"a": UNSURE, "b": MET}, {"threshold": 0.9}, "fail"),
        ({"a": SILENT}, {}, "inconclusive"),
    ],
)
def test_the_worst_of_gates_and_evaluation_decides(tmp_path, answers, gate, decision):
    run = evaluated(tmp_path, answers)

    assert gates.release(evaluation_summary(run), policy({**GATE, **gate}))["decision"] == decision


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"metric": "grounding.traceability"}, "no metric 'grounding.traceability'"),
        ({"metric": "faithfulness.correctness"}, "no metric"),
        ({"criterion": "tracing"}, "no 'tracing' among its criteria"),
        ({"tag": "VIP"}, "no 'VIP' among its tags"),
    ],
)
def test_a_gate_on_a_name_that_is_not_known_is_an_error(tmp_path, changes, words):
    run = evaluated(tmp_path, {"a": MET})

    with pytest.raises(SpecError, match=words):
        gates.release(evaluation_summary(run), policy({**GATE, **changes}))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "must be an object"),
        ({"id": "x", "revision": "1"}, "has no gate"),
        ({"id": "x", "revision": 1, "metric_gates": [GATE]}, "revision must be text"),
        ({"id": "x", "metric_gates": [GATE]}, "revision is missing"),
        ({"id": "x", "revision": "1", "gates": [GATE]}, "unknown field gates"),
        ({"id": "x", "revision": "1", "metric_gates": GATE}, "must be a list"),
        ({"id": "x", "revision": "1", "metric_gates": [GATE, GATE]}, "'traced' occurs more"),
        ({"id": "x", "revision": "1", "schema_version": True, "metric_gates": [GATE]}, "version"),
    ],
)
def test_a_policy_is_read_strictly(value, words):
    with pytest.raises(SpecError, match=words):
        gates.from_json(value)


@pytest.mark.parametrize(
    "changes",
    [
        {"operator": ">="},
        {"threshold": "1"},
        {"threshold": True},
        {"threshold": float("nan")},
        {"threshold": float("inf")},
        {"threshold": 10**400},
        {"min_denominator": 0},
        {"min_denominator": 1.0},
        {"criterion": "a", "tag": "b"},
        {"criterion": None},
        {"tag": " "},
        {"limit": 3},
        {"metric": 3},
    ],
)
def test_a_metric_gate_is_read_strictly(changes):
    with pytest.raises(SpecError, match="metric gate 1"):
        policy({**GATE, **changes})


@pytest.mark.parametrize(
    "gate",
    [
        {"id": "r", "max_regression": -0.1},
        {"id": "r", "max_regression": None},
        {"id": "r"},
        {"id": "r", "max_regression": 0, "metric": ""},
        {"id": "r", "max_regression": 0, "tag": "vip"},
    ],
)
def test_a_regression_gate_is_read_strictly(gate):
    with pytest.raises(SpecError, match="regression gate 1"):
        policy(regressions=[gate])


TWENTY = {f"c{n:02}": MET for n in range(20)}
ONE_WORSE = {**TWENTY, "c00": VIOLATED}


@pytest.mark.parametrize(
    ("before", "after", "gate", "decision"),
    [
        (TWENTY, ONE_WORSE, {"max_regression": 0.05}, "pass"),
        (TWENTY, ONE_WORSE, {"max_regression": 0.04}, "fail"),
        (ONE_WORSE, TWENTY, {"max_regression": 0}, "pass"),
        (TWENTY, {**TWENTY, "new": MET}, {"max_regression": 0}, "pass"),
        ({**TWENTY, "old": MET}, TWENTY, {"max_regression": 0}, "inconclusive"),
        (TWENTY, {**TWENTY, "c00": UNSURE}, {"max_regression": 0}, "inconclusive"),
        ({"a": MET}, {"b": MET}, {"max_regression": 0}, "inconclusive"),
        (
            {"a": MET},
            {"a": UNSURE},
            {"max_regression": 0, "metric": "grounding.ambiguous_quantities"},
            "fail",
        ),
    ],
)
def test_a_regression_gate_limits_how_much_worse_a_metric_is(
    tmp_path, before, after, gate, decision
):
    runs = evaluated(tmp_path, before, "before"), evaluated(tmp_path, after, "after")

    release = gates.release(
        evaluation_summary(runs[1]),
        policy(regressions=[{"id": "worse", **gate}]),
        compared(*runs),
    )

    assert [gate["decision"] for gate in release["gates"]] == [decision]


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("evaluation.met", "no metric"),
        ("grounding.question_quantities", "neither more nor less is better"),
    ],
)
def test_a_regression_gate_needs_a_metric_with_a_direction(tmp_path, metric, words):
    run = evaluated(tmp_path, {"a": MET})
    wanted = policy(regressions=[{"id": "worse", "max_regression": 0, "metric": metric}])

    with pytest.raises(SpecError, match=words):
        gates.release(evaluation_summary(run), wanted, compared(run, run))


def test_a_regression_gate_without_a_baseline_is_an_error(tmp_path):
    run = evaluated(tmp_path, {"a": MET})

    with pytest.raises(SpecError, match="none is given"):
        gates.release(
            evaluation_summary(run), policy(regressions=[{"id": "worse", "max_regression": 0}])
        )


# The commands

POLICY = """
id: release
revision: "1"
metric_gates:
  - id: "traced <b>"
    metric: grounding.quantity_traceability
    operator: at_least
    threshold: {threshold}
"""


@pytest.mark.parametrize(
    ("answer", "threshold", "code", "decision"),
    [(MET, 1, 0, "pass"), (VIOLATED, 0, 2, "fail"), (MET, 2, 2, "fail"), (SILENT, 0, 3, "inconc")],
)
def test_check_exits_by_the_release_decision(
    tmp_path,
    command,
    answer,
    threshold,
    code,
    decision,
):
    run = evaluated(tmp_path, {"a": answer})
    (tmp_path / "policy.yaml").write_text(POLICY.format(threshold=threshold))

    found, out, err = command("check", run, "--policy", tmp_path / "policy.yaml", "--json")

    assert (found, err) == (code, "")
    assert json.loads(out)["decision"].startswith(decision)
    assert json.loads(out)["artifacts"] == []


def test_check_writes_what_a_release_keeps(tmp_path, command):
    run = evaluated(tmp_path, {"a <i>": MET, "b": SILENT}, "after")
    (tmp_path / "policy.yaml").write_text(POLICY.format(threshold=2))
    arguments = ("check", run, "--policy", tmp_path / "policy.yaml", "--out", tmp_path / "kept")

    code, out, _ = command(*arguments, "--baseline", run)

    assert code == 2
    assert "Release: fail" in out
    kept = {path.name: path.read_text() for path in (tmp_path / "kept").iterdir()}
    assert set(kept) == {"evaluation.json", "index.html", "junit.xml", "summary.md"}
    details = json.loads(kept["evaluation.json"])
    assert (details["decision"], details["release"]["decision"]) == ("pass", "fail")
    assert [gate["id"] for gate in details["release"]["gates"]] == ["traced <b>", "comparison"]
    assert details["comparison"]["paired"] == len(details["inputs"]) == 2
    assert "traced &lt;b&gt;" in kept["index.html"]
    assert "traced <b>" not in kept["index.html"]
    assert "a <i>" not in kept["index.html"]
    assert re.search("default-src 'none'; style-src 'sha256-", kept["index.html"])
    suite = ET.fromstring(kept["junit.xml"]).find("testsuite")
    assert suite.attrib["failures"] == "1"
    policy_case = suite.findall("testcase")[-1]
    assert policy_case.attrib["name"] == "release policy"
    assert policy_case.find("failure").attrib["message"] == "fail"
    assert "traced <b>: fail (1, at least 2)" in policy_case.find("failure").text
    assert r"| traced \<b\> | fail | 1, at least 2 |" in kept["summary.md"]


def test_check_replaces_nothing_unless_it_is_forced(tmp_path, command):
    run = evaluated(tmp_path, {"a": MET})
    kept = tmp_path / "kept" / "junit.xml"
    kept.parent.mkdir()
    kept.write_text("mine")

    refused, _, err = command("check", run, "--out", kept.parent)

    assert (refused, kept.read_text()) == (1, "mine")
    assert "--force" in err
    assert list(kept.parent.iterdir()) == [kept]
    assert command("check", run, "--out", kept.parent, "--force")[0] == 0
    assert kept.read_text() != "mine"


def test_where_a_run_has_several_evaluations_the_one_that_was_taken_is_named(tmp_path, command):
    run, single = (evaluated(tmp_path, {"a": MET}, name) for name in ("several", "single"))
    first = evaluation_summary(run)["evaluation_id"]
    latest = evaluate_saved(run, spec(qualification="draft"), new_evaluation=True)
    said = f"{run} has 2 evaluations; this is the latest, {latest} (%s names another)\n"

    _, checked, err = command("check", run, "--baseline", run, "--json")
    _, compared, of_compare = command("compare", single, single, "--json")
    _, named, of_named = command(
        "check", run, "--evaluation-id", first, "--baseline", single, "--json"
    )

    assert err == said % "--evaluation-id" + said % "--baseline-evaluation-id"
    assert json.loads(checked)["evaluation_id"] == latest
    assert json.loads(checked)["baseline_evaluation_id"] == latest
    assert (of_compare, of_named) == ("", "")
    assert json.loads(compared)["decision"] == "pass"
    assert json.loads(named)["evaluation_id"] == first
    assert command("compare", run, run)[2].count("2 evaluations") == 2
    assert command("report", run)[2] == said % "--evaluation-id"


def test_compare_exits_by_its_decision_and_says_why(tmp_path, command):
    before = evaluated(tmp_path, {f"c{n:02}": MET for n in range(25)}, "before")
    after = evaluated(tmp_path, {f"c{n:02}": VIOLATED for n in range(25)}, "after")

    same, out, _ = command("compare", before, before)
    worse, described, _ = command("compare", before, after)
    _, as_json, _ = command("compare", before, after, "--json")

    assert (same, worse) == (0, 2)
    assert "Decision: pass" in out
    assert "Regressions: 25\n  c00 (traceability)" in described
    assert "  and 5 more\n" in described
    assert "Transitions: met -> violated 25" in described
    assert "evaluation.met_rate: 1.000 -> 0.000 (-1.000 [-1.000, -1.000]; 25 pairs)" in described
    assert len(json.loads(as_json)["regressions"]) == 25


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "RUN"),
        ("compare", "RUN", "BARE"),
        ("compare", "RUN", "RUN", "--baseline-evaluation-id", "none"),
        ("compare", "RUN", "RUN", "--candidate-evaluation-id", "none"),
        ("check", "BARE"),
        ("check", "RUN", "--policy", "no-such-file"),
        ("check", "RUN", "--policy", "RUN/run.sqlite3"),
        ("check", "RUN", "--baseline", "BARE"),
        ("check", "RUN", "--baseline-evaluation-id", "none"),
        ("check", "RUN", "--evaluation-id", "none"),
    ],
)
def test_what_cannot_be_compared_or_checked_exits_1(
    tmp_path,
    command,
    arguments,
):
    run = evaluated(tmp_path, {"a": MET})
    bare = captured(tmp_path, [user(), assistant()])
    named = [each.replace("RUN", str(run)).replace("BARE", str(bare)) for each in arguments]

    code, out, err = command(*named)

    assert (code, out) == (1, "")
    assert err
