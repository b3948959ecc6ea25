import io
import json

import pytest

from evaluators import assess


def run(*lines):
    """Assess lines, text or bytes; return the exit code, the results and the problems."""
    results, problems = io.StringIO(), io.StringIO()
    encoded = [line if isinstance(line, bytes) else f"{line}\n".encode() for line in lines]
    code = assess.run(encoded, results, problems)
    return code, [json.loads(line) for line in results.getvalue().splitlines()], problems.getvalue()


def record(**fields):
    return json.dumps({"question": "How much?", "answer": "Take 5 mg [1].", **fields})


TRACED = {
    "outcome": "met",
    "quantities": [
        {
            "quote": "5 mg",
            "normalized": "mass:eq:1/200",
            "status": "source",
            "evidence": {"source_id": "passage:1", "quote": "0.005 g"},
        }
    ],
    "citations": [{"quote": "[1]", "index": 1, "source_id": "passage:1"}],
}


@pytest.mark.parametrize(
    "evidence",
    [
        {"context": {"excerpts": [{"text": "Give 0.005 g.", "id": 3}]}},
        {"context": {"passages": ["Give 0.005 g."]}},
        {"passages": ["Give 0.005 g."]},
        {"passages": [{"body": "Give 0.005 g."}]},
        {"context": {"passages": ["Give 0.005 g."]}, "passages": ["else"], "extra": 1},
    ],
)
def test_each_form_of_evidence_is_taken(evidence):
    assert run(record(**evidence)) == (0, [TRACED], "")


def test_a_value_of_the_question_names_the_question():
    line = record(question="I have 5 mg.", answer="Take 5 mg.", passages=[])

    _, (result,), _ = run(line)

    assert result["quantities"][0]["evidence"] == {"source_id": "turn:0", "quote": "5 mg"}
    assert result["quantities"][0]["status"] == "question"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "there is no context"),
        ({"context": None, "passages": ["p"]}, "there is no context"),
        ({"passages": "p"}, "passages is not a list"),
        ({"passages": ["p", None]}, "passage 2 is neither text nor an object"),
        ({"question": None, "passages": []}, "no user question comes before the answer"),
    ],
)
def test_missing_evidence_is_a_result(fields, reason):
    assert run(record(**fields)) == (0, [{"outcome": "missing_evidence", "reason": reason}], "")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"answer": }', "is not JSON: Expecting value at column 12"),
        ("[1]", "is not a JSON object"),
        ('"text"', "is not a JSON object"),
        ("{}", "has no answer"),
        (record(answer=None), "has no answer"),
        (record(answer=5), "has answer that is not a string"),
        (record(question=["q"]), "has question that is not a string"),
        ('{"answer": NaN}', "holds NaN, which is not JSON"),
        ('{"answer": "a", "n": 1e999}', "holds a number that is not finite"),
        ('{"answer": "a", "n": ' + "9" * 5_000 + "}", "holds an integer of more than 4300 digits"),
        (r'{"answer": "\ud800"}', "holds half of a surrogate pair, which is not a character"),
        (b'{"answer": "\xff"}', "is not UTF-8"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_malformed_line_is_named_and_the_others_are_assessed(line, reason):
    good = record(passages=["Give 0.005 g."])

    code, results, problems = run(good, "", line, good)

    assert code == 1
    assert results == [TRACED, TRACED]
    assert problems == f"line 3 {reason}\n"


def test_a_byte_order_mark_is_named():
    code, results, problems = run(b"\xef\xbb\xbf" + record(passages=[]).encode())

    assert (code, results) == (1, [])
    assert problems.startswith("line 1 starts with a byte order mark")


def test_windows_line_ends_and_nul_are_taken():
    line = record(answer="Take\u0000 5\r\nmg.", passages=["5 mg"]).encode() + b"\r\n"

    code, (result,), _ = run(line)

    assert (code, result["outcome"]) == (0, "met")
    assert result["quantities"][0]["quote"] == "5\r\nmg"


def test_without_lines_there_is_nothing_to_say():
    assert run() == (0, [], "")
    assert run("", "  ") == (0, [], "")


def test_a_citation_too_long_to_be_a_number_is_unresolved():
    quote = f"[{'9' * 5_000}]"

    code, (result,), _ = run(record(answer=quote, passages=["a"]))

    assert (code, result["outcome"]) == (0, "violated")
    assert result["citations"] == [{"quote": quote, "index": None, "source_id": None}]
