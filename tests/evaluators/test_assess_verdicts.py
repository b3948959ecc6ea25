"""`mesedi-eval assess --verdicts`: saved verdicts are read again, without a run."""

import io
import json
import subprocess
import sys

import pytest

from evaluators import assess
from tests.evaluators import verdict_samples as samples


def run(*lines):
    """Read lines, text or bytes; return the exit code, the results and the problems."""
    results, problems = io.StringIO(), io.StringIO()
    encoded = [line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines]
    code = assess.run(encoded, results, problems, are_verdicts=True)
    return code, [json.loads(line) for line in results.getvalue().splitlines()], problems.getvalue()


def record(verdict=None, **fields):
    return json.dumps(
        {
            "question": "I have 3 L",
            "answer": samples.ANSWER,
            "context": {"passages": ["Drink 2 L; sleep 7 hours."]},
            "verdict": samples.faithful() if verdict is None else verdict,
            **fields,
        }
    )


MET = (0, [{"outcome": "met"}], "")


def test_a_verdict_is_an_object_or_raw_text():
    assert run(record()) == MET
    assert run(record(json.dumps(samples.faithful(), indent=1))) == MET


def test_passages_stand_for_a_context():
    fields = json.loads(record())
    passages = fields.pop("context")["passages"]

    assert run(json.dumps(fields | {"passages": passages})) == MET


@pytest.mark.parametrize(("least", "outcome"), [(9, "met"), (10, "violated")])
def test_the_least_correctness_is_the_lines_own(least, outcome):
    assert run(record(min_correctness=least)) == (0, [{"outcome": outcome}], "")


def test_the_least_correctness_is_seven_by_default():
    assert run(record(samples.faithful(correctness=7))) == MET
    assert run(record(samples.faithful(correctness=6)))[1] == [{"outcome": "violated"}]


@pytest.mark.parametrize("verdict", ["", "Sorry.", 5, [], True, {}, "{}", "[" * 100_000])
def test_an_invalid_verdict_is_a_result_with_its_reason(verdict):
    code, (result,), problems = run(record(verdict))

    assert (code, result["outcome"], problems) == (0, "invalid", "")
    assert result["reason"]


def test_null_is_an_invalid_verdict():
    line = record().replace(json.dumps(samples.faithful()), "null")

    assert run(line) == (0, [{"outcome": "invalid", "reason": "is not a JSON object"}], "")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"correctness": 9', '"correctness": 9, "correctness": 9', "repeats a field"),
        ('"status"', '"status": "supported", "status"', "repeats a field"),
        ('"quote"', '"quote": "x", "quote"', "repeats a field"),
        ('"correctness": 9', '"correctness": NaN', "holds a number that is not finite"),
        ('"correctness": 9', f'"correctness": {"9" * 5_000}', "holds a number that is not finite"),
        ("It is so.", r"\ud800", "holds half of a surrogate pair"),
    ],
)
def test_what_is_wrong_inside_a_verdict_makes_it_invalid_not_the_line(old, new, reason):
    line = record().replace(old, new)

    code, (result,), problems = run(line)

    assert line != record()
    assert (code, result["outcome"], problems) == (0, "invalid", "")
    assert result["reason"].startswith(reason)


@pytest.mark.parametrize(
    "verdict",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        r'{"]}\"": "verdict", "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
def test_a_verdict_nested_too_deeply_is_invalid_wherever_it_stands(verdict):
    rest = json.dumps(samples.without(json.loads(record()), "verdict"))[1:-1]
    invalid = (0, [{"outcome": "invalid", "reason": "is nested too deeply"}], "")

    for line in (
        f'{{{rest}, "verdict":{verdict}}}',
        f'{{"verdict" : {verdict}, {rest}}}',
        f'{{"x": {{"verdict": 1}}, "y": "verdict", {rest}, "verdict": {verdict}}}',
    ):
        assert run(line) == invalid


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (record()[:-1] + ', "n": ' + "[" * 100_000 + "]" * 100_000 + "}", "is nested too deeply"),
        ('{"verdict": ' + "[" * 100_000, "is nested too deeply"),
        ('{"verdict": ' + "[" * 100_000 + r'"\"\"' * 100_000, "is nested too deeply"),
        ('{"verdict": }', "is not JSON: Expecting value at column 13"),
        ("[]", "is not a JSON object"),
        (samples.without(json.loads(record()), "verdict"), "has no verdict"),
        (samples.without(json.loads(record()), "answer"), "has no answer"),
        (record(answer=5), "has answer that is not a string"),
        (record(question=5), "has question that is not a string"),
        *[
            (
                record(min_correctness=value),
                "has min_correctness that is not an integer from 0 to 10",
            )
            for value in (None, True, 7.0, "7", -1, 11)
        ],
        (record()[:-1] + ', "verdict": {}}', "gives a field twice"),
        (record()[:-1] + ', "answer": "other"}', "gives a field twice"),
        (record().replace('"passages"', '"passages": [], "passages"'), "gives a field twice"),
        (record()[:-1] + ', "n": NaN}', "holds a number that is not finite"),
        (
            record()[:-1] + r', "n": "\ud800"}',
            "holds half of a surrogate pair, which is not a character",
        ),
        (record()[:-1] + ', "n": ' + "9" * 5_000 + "}", "holds a number that is not finite"),
        (record()[:-1] + ', "n": ' + "[" * 100_000, "is nested too deeply"),
        (b'{"answer": "\xff"}', "is not UTF-8"),
    ],
)
def test_a_malformed_line_is_named_and_the_others_are_read(line, reason):
    line = json.dumps(line) if isinstance(line, dict) else line

    code, results, problems = run(record(), line, record())

    assert (code, results) == (1, MET[1] * 2)
    assert problems == f"line 2 {reason}\n"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"context": None}, "there is no context"),
        ({"context": {"passages": [" "]}}, "passage 1 is malformed: the item is blank"),
        ({"question": None}, "no user question comes before the answer"),
    ],
)
def test_unreadable_evidence_comes_before_the_verdict(fields, reason):
    expected = {"outcome": "missing_evidence", "reason": reason}

    assert run(record("Sorry.", **fields)) == (0, [expected], "")


def test_the_command_reads_a_file(tmp_path):
    file = tmp_path / "verdicts.jsonl"
    file.write_text(f"{record()}\n{record('prose')}\n", encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "evaluators", "assess", "--verdicts", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    outcomes = [json.loads(line)["outcome"] for line in done.stdout.splitlines()]
    assert outcomes == ["met", "invalid"]
