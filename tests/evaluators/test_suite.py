import json

import pytest
import yaml

from evaluators import evaluate_saved, evaluation_summary
from evaluators.capture import capture, status
from evaluators.errors import EvaluatorsError, FactoryError, ResumeRefusedError, RunError, SpecError
from evaluators.store import plan
from evaluators.store.database import opened
from evaluators.suite import load, run
from tests.evaluators.records import assistant, captured, pairs, spec, user, write
from tests.evaluators.test_comparison import rewrite

EVALUATION = {
    "id": "checks",
    "revision": "r1",
    "qualification": "reviewed",
    "criteria": [{"id": "traceability", "revision": "v1", "evaluator": "grounding"}],
}
POLICY = {
    "id": "release",
    "revision": "1",
    "metric_gates": [
        {"id": "met", "metric": "evaluation.met_rate", "operator": "at_least", "threshold": 1}
    ],
}
NO_REGRESSION = {"id": "worse", "max_regression": 0}
TARGET = """
from pathlib import Path
from evaluators.targets import RecoveryContract, TargetReply
class Bot:
    contract = RecoveryContract('0' * 64, 'stateless', 'idempotent')
    def chat(self, messages, *, request_id):
        if Path(__file__).with_name('broken').exists() and len(messages) > 1:
            raise ConnectionError('secret')
        return TargetReply('5 mg', {'passages': ['5 mg']})
def make():
    return 'bot', Bot()
"""


@pytest.fixture
def suite_file(tmp_path):
    """Write a suite in a folder of its own and return its path."""

    def write_suite(records=None, **changes):
        folder = tmp_path / "suite"
        folder.mkdir(exist_ok=True)
        write(folder / "data.jsonl", records or [user(), assistant()])
        fields = {"id": "s", "revision": "1", "dataset": "data.jsonl", "evaluation": EVALUATION}
        fields |= changes
        path = folder / "suite.yaml"
        given = {name: value for name, value in fields.items() if value is not None}
        path.write_text(yaml.safe_dump(given))
        return path

    return write_suite


def snapshot(directory):
    with opened(directory) as connection:
        key = plan.manifest(connection)["suite_digest"]
        (content,) = connection.execute(
            "SELECT content FROM source_artifacts WHERE digest = ?", (key,)
        ).fetchone()
    return json.loads(content)


def test_the_example_runs_as_it_is(tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)

    made, out, _ = command("init-suite", "garden", "--json")
    code, printed, err = command("run-suite", "garden/suite.yaml", "--json")

    assert (made, code, err) == (0, 0, "")
    assert json.loads(out)["files"] == ["garden/suite.yaml", "garden/dataset.jsonl"]
    found = json.loads(printed)
    assert set(found) == {"run_dir", "evaluation_id", "decision", "capture_error", "artifacts"}
    assert (found["decision"], found["capture_error"]) == ("pass", None)
    assert found["run_dir"].startswith("reports/")
    summary = evaluation_summary(tmp_path / found["run_dir"], found["evaluation_id"])
    assert summary["counts"] == {"met": 4, "not_applicable": 1}
    kept = [json.loads((tmp_path / path).read_text()) for path in found["artifacts"][:1]]
    assert [gate["decision"] for gate in kept[0]["release"]["gates"]] == ["pass"] * 3
    assert command("check", found["run_dir"])[0] == 0


def test_the_example_replaces_nothing_unless_forced(tmp_path, command):
    (tmp_path / "dataset.jsonl").write_text("mine")

    refused, _, err = command("init-suite", tmp_path)

    assert (refused, (tmp_path / "dataset.jsonl").read_text()) == (1, "mine")
    assert "--force" in err
    assert not (tmp_path / "suite.yaml").exists()
    assert command("init-suite", tmp_path, "--force")[0] == 0


@pytest.mark.parametrize(
    ("answer", "threshold", "code"), [("5 mg", 1, 0), ("9 mg", 0, 2), ("5 mg", 2, 2)]
)
def test_a_suite_exits_by_the_release_decision(
    tmp_path, command, suite_file, answer, threshold, code
):
    policy = json.loads(json.dumps(POLICY))
    policy["metric_gates"][0]["threshold"] = threshold
    path = suite_file([user(), assistant(answer)], policy=policy)

    found, out, _ = command("run-suite", path, "--out", tmp_path / "runs")

    assert found == code
    assert "Decision: " in out


def test_a_draft_of_a_suite_is_inconclusive(tmp_path, command, suite_file):
    path = suite_file(evaluation={**EVALUATION, "qualification": "draft"})

    assert command("run-suite", path, "--out", tmp_path / "runs")[0] == 3


def test_everything_a_suite_names_is_frozen_with_its_run(tmp_path, suite_file):
    path = suite_file(evaluation="spec.yaml", policy="policy.yaml", persona="persona.md")
    path.with_name("spec.yaml").write_text(yaml.safe_dump(EVALUATION))
    path.with_name("policy.yaml").write_text(yaml.safe_dump(POLICY))
    path.with_name("persona.md").write_text("calm")

    outcome = run(load(path), tmp_path / "runs")

    frozen = snapshot(tmp_path / "runs" / outcome.run_dir)
    assert frozen["evaluation"]["criteria"][0]["evidence_requirement"] == "context"
    assert frozen["policy"]["metric_gates"][0]["min_denominator"] == 1
    assert frozen["dataset"] == "data.jsonl"


def test_paths_are_relative_to_the_file(tmp_path, suite_file, monkeypatch):
    earlier = run(load(suite_file()), tmp_path / "suite" / "runs")
    relative = str(tmp_path / "suite" / "runs" / earlier.run_dir).removeprefix(
        f"{tmp_path / 'suite'}/"
    )
    path = suite_file(baseline=relative)
    monkeypatch.chdir("/")

    outcome = run(load(path), tmp_path / "runs")

    assert outcome.decision == "pass"
    assert [gate["id"] for gate in outcome.release["gates"]] == ["comparison"]


def test_a_suite_compares_with_its_baseline(tmp_path, suite_file):
    before = run(load(suite_file(pairs(8))), tmp_path / "runs")
    policy = {"id": "p", "revision": "1", "regression_gates": [NO_REGRESSION]}
    records = pairs(7) + pairs(8, "9 mg")[-2:]
    path = suite_file(
        records,
        baseline=before.run_dir,
        baseline_evaluation_id=before.evaluation_id,
        policy=policy,
    )

    outcome = run(load(path), tmp_path / "runs")

    assert outcome.decision == "fail"
    assert outcome.release["gates"][0]["delta"] == -0.125


def test_a_baseline_that_cannot_be_read_stops_a_suite_before_it_captures(tmp_path, suite_file):
    bare = captured(tmp_path, [user(), assistant()])

    for name in ("no-such-run", str(bare)):
        with pytest.raises(RunError):
            run(load(suite_file(baseline=name)), tmp_path / "new")

    assert not (tmp_path / "new").exists()


def test_what_was_captured_before_a_failure_is_evaluated_and_the_rest_resumed(
    tmp_path, command, suite_file
):
    path = suite_file(
        [user("5 mg?"), assistant("a"), user("And?"), assistant("b")],
        target_factory="target_of_the_suite_test:make",
        max_target_calls=5,
    )
    path.with_name("target_of_the_suite_test.py").write_text(TARGET)
    path.with_name("broken").touch()

    code, out, _ = command("run-suite", path, "--out", tmp_path / "runs", "--json")
    first = json.loads(out)
    path.with_name("broken").unlink()
    resumed, out, _ = command("run-suite", path, "--resume", first["run_dir"], "--json")
    second = json.loads(out)

    assert (code, first["decision"]) == (3, "inconclusive")
    assert first["capture_error"] == "provider_error (ConnectionError)"
    assert "secret" not in json.dumps(first)
    assert (resumed, second["decision"], second["capture_error"]) == (0, "pass", None)
    assert second["run_dir"] == first["run_dir"]
    assert second["evaluation_id"] != first["evaluation_id"]
    assert status(tmp_path / first["run_dir"])["status"] == "captured"


def test_resuming_a_finished_suite_changes_no_byte_of_the_run(tmp_path, suite_file):
    path = suite_file()
    first = run(load(path), tmp_path / "runs")
    database = tmp_path / first.run_dir / "run.sqlite3"
    before = database.read_bytes()

    second = run(load(path), resumed=tmp_path / first.run_dir)

    assert (second.evaluation_id, second.decision) == (first.evaluation_id, "pass")
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    "changes",
    [
        {"revision": "2"},
        {"evaluation": {**EVALUATION, "revision": "r2"}},
        {"policy": POLICY},
        {"records": [user(), assistant("other")]},
    ],
)
def test_only_the_identical_suite_resumes_a_run(tmp_path, suite_file, changes):
    first = run(load(suite_file()), tmp_path / "runs")

    with pytest.raises(ResumeRefusedError):
        run(load(suite_file(**changes)), resumed=tmp_path / first.run_dir)


def test_a_run_that_no_suite_made_is_not_resumed_by_one(tmp_path, suite_file):
    path = suite_file()
    bare = capture(path.with_name("data.jsonl"), tmp_path / "runs")

    with pytest.raises(ResumeRefusedError, match="not made by this suite"):
        run(load(path), resumed=bare)


def test_another_evaluation_of_the_run_does_not_stop_a_suite(tmp_path, suite_file):
    path = suite_file()
    first = run(load(path), tmp_path / "runs")
    evaluate_saved(tmp_path / first.run_dir, spec(revision="mine"), new_evaluation=True)

    assert run(load(path), resumed=tmp_path / first.run_dir).evaluation_id == first.evaluation_id


JUDGED = {
    **EVALUATION,
    "criteria": [{"id": "true", "revision": "v1", "evaluator": "faithfulness"}],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dataset": None}, "dataset is missing"),
        ({"evaluation": None}, "evaluation is missing"),
        ({"revision": 1}, "revision must be text"),
        ({"dataset": ["a"]}, "dataset must be text"),
        ({"datasets": "a"}, "unknown field datasets"),
        ({"schema_version": 2}, "schema_version must be 1"),
        ({"evaluation": {**EVALUATION, "streams": ["primary", "compare"]}}, "primary alone"),
        ({"evaluation": {**EVALUATION, "criteria": []}}, "at least one"),
        ({"evaluation": "no-such-file"}, "cannot be read"),
        ({"evaluation": 3}, "must be an object"),
        ({"policy": "no-such-file"}, "cannot be read"),
        ({"policy": {"id": "p", "revision": "1"}}, "has no gate"),
        (
            {"policy": {**POLICY, "regression_gates": [NO_REGRESSION]}},
            "a regression gate needs a baseline",
        ),
        (
            {
                "policy": {
                    **POLICY,
                    "metric_gates": [{**POLICY["metric_gates"][0], "criterion": "x"}],
                }
            },
            "no criterion 'x'",
        ),
        ({"target_factory": "m:f"}, "target_factory needs max_target_calls"),
        ({"max_target_calls": 3}, "max_target_calls needs target_factory"),
        ({"target_factory": "m:f", "max_target_calls": -1}, "integer from 0"),
        ({"target_factory": "m:f", "max_target_calls": True}, "integer from 0"),
        ({"baseline_evaluation_id": "x"}, "needs baseline"),
        ({"evaluation": JUDGED}, "'true' needs judge_factory and judge_budget"),
        ({"judge_factory": "m:f"}, "judge_factory needs judge_budget"),
        ({"judge_budget": {}}, "max_calls is missing"),
        ({"judge_budget": {"max_calls": "3"}}, "max_calls must be an integer"),
        ({"judge_budget": {"max_calls": 3, "max_cost_micros": 0.5}}, "max_cost_micros must be"),
        ({"judge_budget": {"max_calls": 10**30}}, "max_calls must be an integer"),
        ({"judge_budget": {"max_calls": 3, "max_cost_micros": 10**30}}, "max_cost_micros must be"),
        ({"judge_budget": {"max_calls": 3, "max_cost": 1}}, "unknown field max_cost"),
        ({"evaluator_factories": "m:f"}, "must be a list"),
        ({"evaluator_factories": [3]}, "evaluator_factories 1 must be text"),
    ],
)
def test_a_suite_is_read_strictly(suite_file, changes, words):
    path = suite_file(**changes)

    with pytest.raises(SpecError, match=words) as caught:
        load(path)

    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"{", b"- 1", b"id: a\nid: b\n", b"!!python/none x", b"[" * 5000]
)
def test_a_file_that_is_no_suite_exits_1(tmp_path, command, content):
    (tmp_path / "suite.yaml").write_bytes(content)

    code, out, err = command("run-suite", tmp_path / "suite.yaml")

    assert (code, out) == (1, "")
    assert "suite.yaml" in err


def test_a_dataset_that_is_not_there_or_not_taken_exits_1(tmp_path, command, suite_file):
    path = suite_file()
    path.with_name("data.jsonl").write_text("{}\n")
    assert command("run-suite", path, "--out", tmp_path / "runs")[0] == 1

    path.with_name("data.jsonl").unlink()
    code, _, err = command("run-suite", path, "--out", tmp_path / "runs")

    assert code == 1
    assert "data.jsonl is no file" in err


def test_a_suite_with_a_judge_beside_it_pays_once(tmp_path, command, suite_file):
    path = suite_file(
        evaluation=JUDGED,
        judge_factory="judge_of_the_suite_test:make",
        judge_budget={"max_calls": 5},
    )
    path.with_name("judge_of_the_suite_test.py").write_text(
        "from tests.evaluators.judge import Judge as make\n"
    )

    code, out, _ = command("run-suite", path, "--out", tmp_path / "runs", "--json")
    found = json.loads(out)
    again, _, _ = command("run-suite", path, "--resume", found["run_dir"])

    assert (code, again) == (0, 0)
    budget = evaluation_summary(tmp_path / found["run_dir"])["budget"]
    assert (budget["limits"]["max_calls"], budget["reserved_calls"]) == (5, 1)


@pytest.mark.parametrize("name", ["no_such_module:make", "json:loads"])
def test_a_judge_that_cannot_be_loaded_stops_a_suite_before_it_captures(tmp_path, suite_file, name):
    path = suite_file(evaluation=JUDGED, judge_factory=name, judge_budget={"max_calls": 5})

    with pytest.raises(FactoryError):
        run(load(path), tmp_path / "runs")

    assert not (tmp_path / "runs").exists()


def test_a_budget_of_a_suite_is_frozen_with_the_run(tmp_path, suite_file):
    path = suite_file(judge_budget={"max_calls": 3})

    outcome = run(load(path), tmp_path / "runs")

    limits = evaluation_summary(tmp_path / outcome.run_dir)["budget"]["limits"]
    assert limits["max_calls"] == 3


def test_a_suite_of_another_package_version_is_compared_with_nothing(tmp_path, suite_file):
    before = run(load(suite_file()), tmp_path / "runs")
    rewrite(tmp_path / before.run_dir, "package_version", "0.0.1")

    with pytest.raises(EvaluatorsError, match="package versions"):
        run(load(suite_file(baseline=before.run_dir)), tmp_path / "runs")
