import json

import pytest

from evaluators.capture import capture
from evaluators.errors import DatasetError
from evaluators.store import answers
from evaluators.store.database import opened
from tests.evaluators.records import assistant, captured, user


def observed(run, ordinal):
    with opened(run) as connection:
        return answers.observation(connection, "run", "primary", ordinal)


def plan(run):
    with opened(run) as connection:
        return connection.execute(
            "SELECT session_id, role, case_id FROM inputs ORDER BY ordinal"
        ).fetchall()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"text": "x"}', "session_id must be a string"),
        ('{"session_id": " "}', "session_id must be a string"),
        ('{"session_id": "s", "text": null}', "text must be a string"),
        ('{"session_id": "s", "role": 1}', "role must be a string"),
        ('{"session_id": "s", "turn_index": -1}', "turn_index must be an integer"),
        ('{"session_id": "s", "turn_index": true}', "turn_index must be an integer"),
        ('{"session_id": "s", "turn_index": 1.0}', "turn_index must be an integer"),
        ('{"session_id": "s", "turn_index": null}', "turn_index must be an integer"),
        ('{"session_id": "s", "turn_index": 9223372036854775808}', "turn_index must be an integer"),
        ('{"session_id": "s", "metadata": []}', "metadata must be an object"),
        ('{"session_id": "s", "metadata": {"context": []}}', "metadata.context must be an object"),
        ('{"session_id": "s", "metadata": {"usage": 1}}', "metadata.usage must be an object"),
        ('{"session_id": "s", "metadata": {"split_group": 1}}', "metadata.split_group must be"),
        ('{"session_id": "s", "role": "assistant", "case_id": 7}', "case_id must be a string"),
        ('{"session_id": "s", "x": NaN}', "holds NaN"),
        ('\ufeff{"session_id": "s"}', "is not JSON: Unexpected UTF-8 BOM"),
        ('{"session_id": "s", "x": 1e999}', "holds a number that is not finite"),
        ('{"session_id": "s", "text": "\\ud800"}', "half of a surrogate pair"),
        (f'{{"session_id": "s", "x": {"9" * 5000}}}', "more than 4300 digits"),
        (f'{{"session_id": "s", "x": {"[" * 100_000}}}', "nested too deeply"),
    ],
)
def test_a_record_that_cannot_be_taken_is_named_by_line_and_reason(tmp_path, line, reason):
    dataset = tmp_path / "data.jsonl"
    dataset.write_text(f"{json.dumps(user())}\n\n{line}\n")

    with pytest.raises(DatasetError) as caught:
        capture(dataset, tmp_path / "runs")

    assert [number for number, _ in caught.value.problems] == [3]
    assert reason in str(caught.value)
    assert list((tmp_path / "runs").iterdir()) == []


def test_every_bad_record_is_named_not_only_the_first(tmp_path):
    dataset = tmp_path / "data.jsonl"
    dataset.write_text("nothing\n" * 150 + json.dumps(user(turn_index=1)) * 1 + "\n")

    with pytest.raises(DatasetError) as caught:
        capture(dataset, tmp_path / "runs")

    assert [number for number, _ in caught.value.problems] == list(range(1, 101))
    assert str(caught.value).endswith("and 50 more")


def test_a_byte_order_mark_is_refused_with_the_way_out(tmp_path):
    dataset = tmp_path / "data.jsonl"
    dataset.write_text(json.dumps(user()), encoding="utf-8-sig")

    with pytest.raises(DatasetError, match=r"line 1: .* byte order mark; save the file as UTF-8"):
        capture(dataset, tmp_path / "runs")


def test_text_that_is_not_utf8_is_refused(tmp_path):
    dataset = tmp_path / "data.jsonl"
    dataset.write_bytes(b'{"session_id": "\xe9"}\n')

    with pytest.raises(DatasetError, match="line 1: is not UTF-8"):
        capture(dataset, tmp_path / "runs")


def test_windows_line_ends_are_white_space(tmp_path):
    dataset = tmp_path / "data.jsonl"
    dataset.write_bytes(b"".join(json.dumps(t).encode() + b"\r\n" for t in (user(), assistant())))

    run = capture(dataset, tmp_path / "runs")

    assert observed(run, 1).text == "Take 5 mg [1]."


@pytest.mark.parametrize("text", ["a\x00b", "  spaced\u2028out ", "café 5\u00a0mg", "", "\r\n"])
def test_the_text_of_an_answer_is_kept_exactly(tmp_path, text):
    run = captured(tmp_path, [user(), assistant(text)])

    assert observed(run, 1).text == text


@pytest.mark.parametrize(
    ("context", "status"), [(None, "missing"), ({}, "provided"), ({"passages": []}, "provided")]
)
def test_an_empty_context_is_not_a_missing_one(tmp_path, context, status):
    run = captured(tmp_path, [user(), assistant(context=context)])

    assert observed(run, 1).context == context
    assert observed(run, 1).context_status == status


def test_sessions_are_sorted_by_id_and_turns_by_index(tmp_path):
    run = captured(
        tmp_path,
        [
            assistant(session="b", turn_index=5),
            user(session="a"),
            user(session="b", turn_index=1),
            assistant(session="a"),
            user(session="b", role=" System "),
        ],
    )

    assert plan(run) == [
        ("a", "user", None),
        ("a", "assistant", "a:0"),
        ("b", "system", None),
        ("b", "user", None),
        ("b", "assistant", "b:0"),
    ]


@pytest.mark.parametrize("role", [None, "", "  "])
def test_a_turn_without_a_role_is_a_users(tmp_path, role):
    run = captured(tmp_path, [user(role=role)])

    assert plan(run) == [("s", "user", None)]


def test_a_turn_index_used_twice_names_both_lines(tmp_path):
    with pytest.raises(DatasetError, match=r"line 3: turn_index 1 of session 's' .* line 1"):
        captured(
            tmp_path, [user(turn_index=1), user(turn_index=1, session="t"), user(turn_index=1)]
        )


def test_a_case_id_used_twice_names_both_lines(tmp_path):
    records = [assistant(session="a", case_id="b:0"), assistant(session="b")]

    with pytest.raises(DatasetError, match=r"line 2: case_id 'b:0' is that of line 1"):
        captured(tmp_path, records)


def test_an_empty_file_is_a_capture_without_cases(tmp_path):
    run = captured(tmp_path, [])

    assert plan(run) == []


def revisions(run):
    with opened(run) as connection:
        return [
            revision
            for (revision,) in connection.execute(
                "SELECT case_revision FROM inputs WHERE role = 'assistant' ORDER BY ordinal"
            )
        ]


def test_a_case_keeps_its_revision_when_only_answers_change(tmp_path):
    before = [user(), assistant("one"), user("And?"), assistant("two")]
    after = [user(), assistant("three"), user("And?"), assistant("four")]

    assert revisions(captured(tmp_path, before)) == revisions(captured(tmp_path, after))


@pytest.mark.parametrize(
    "changed",
    [
        [user("Other?"), assistant("one")],
        [user(), user(), assistant("one")],
        [user(), assistant("one", case_revision="2")],
    ],
)
def test_a_case_has_a_new_revision_when_the_question_or_the_declared_one_changes(tmp_path, changed):
    before = revisions(captured(tmp_path, [user(), assistant("one")]))

    assert revisions(captured(tmp_path, changed)) != before
