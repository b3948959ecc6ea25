import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from evaluators import evaluate_saved, evaluation_summary
from evaluators.capture import capture, status
from evaluators.errors import CaptureFailedError, CorruptRunError, FactoryError, ResumeRefusedError
from evaluators.factories import load
from evaluators.resuming import resume
from evaluators.store.database import opened
from evaluators.targets import RecoveryContract, Target, TargetReply, build
from tests.evaluators.records import DOSE, assistant, captured, spec, user, write

RECORDS = [
    user("How much?"),
    assistant("old answer", usage_note="kept"),
    user("How long?"),
    assistant("older answer"),
]
IDEMPOTENT = RecoveryContract("0" * 64, "stateless", "idempotent")
ONCE = RecoveryContract("0" * 64, "stateless")


@dataclass
class Assistant:
    """A target that answers from a list; an exception in it is raised."""

    replies: list
    contract: RecoveryContract = IDEMPOTENT
    asked: list = field(default_factory=list)

    def chat(self, messages, *, request_id):
        self.asked.append((messages, request_id))
        reply = self.replies.pop(0)
        if isinstance(reply, BaseException):
            raise reply
        return reply


def primary(*replies, model="bot-1", **options):
    return {"primary": Target(model, Assistant(list(replies), **options))}


def failed(tmp_path, *replies, records=RECORDS, **options):
    """A run whose target failed, and its directory."""
    limit = options.pop("max_target_calls", None)
    dataset = write(tmp_path / "data.jsonl", records)
    with pytest.raises(CaptureFailedError) as caught:
        capture(
            dataset,
            tmp_path / "runs",
            targets=primary(*replies, **options),
            max_target_calls=limit,
        )
    return caught.value.directory


def test_a_target_is_sent_the_conversation_with_its_own_answers(tmp_path):
    targets = primary("first", "second")

    captured(tmp_path, RECORDS, targets=targets)

    asked = targets["primary"].provider.asked
    assert [message["content"] for message in asked[1][0]] == ["How much?", "first", "How long?"]
    assert [message["role"] for message in asked[1][0]] == ["user", "assistant", "user"]
    assert asked[0][1] != asked[1][1]


def test_a_generated_transcript_keeps_the_old_answer_beside_the_new(tmp_path):
    reply = TargetReply("  Take 5 mg.\n", context=DOSE, usage={"tokens": 3})

    run = captured(tmp_path, RECORDS[:2], targets=primary(reply))

    turn = json.loads((run / "transcripts" / "bot-1.jsonl").read_text().splitlines()[1])
    assert turn["text"] == "Take 5 mg."
    assert turn["metadata"] == {
        "context": DOSE,
        "usage": {"tokens": 3},
        "generated_by": "bot-1",
        "baseline_text": "old answer",
    }
    assert turn["usage_note"] == "kept"


def test_a_generated_answer_is_evaluated_with_its_own_context(tmp_path):
    run = captured(tmp_path, RECORDS, targets=primary("5 mg", TargetReply("5 mg", context=DOSE)))

    evaluate_saved(run, spec())

    assert evaluation_summary(run)["counts"] == {"met": 1, "missing_evidence": 1}


@pytest.mark.parametrize(
    ("reply", "attempt", "kind"),
    [
        (ConnectionError("secret"), "unknown_outcome", "provider_error"),
        (TimeoutError("secret"), "unknown_outcome", "timeout"),
        (None, "failed", "invalid_response"),
        (TargetReply("x", context=[1]), "failed", "invalid_response"),
        (TargetReply("x", usage={"n": float("nan")}), "failed", "invalid_response"),
        ("\ud800", "failed", "invalid_response"),
    ],
)
def test_a_failure_keeps_its_kind_and_class_but_no_message(tmp_path, reply, attempt, kind):
    run = failed(tmp_path, "first", reply)

    found = status(run)
    assert (found["status"], found["failure_kind"]) == ("failed", kind)
    assert found["committed_records"] == 3
    assert found["attempts"] == {"succeeded": 1, attempt: 1}
    assert b"secret" not in (run / "run.sqlite3").read_bytes()


def test_ctrl_c_leaves_an_interrupted_run(tmp_path):
    dataset = write(tmp_path / "data.jsonl", RECORDS)

    with pytest.raises(KeyboardInterrupt):
        capture(dataset, tmp_path / "runs", targets=primary("first", KeyboardInterrupt()))

    (run,) = (tmp_path / "runs").iterdir()
    assert status(run)["status"] == "interrupted"
    assert status(run)["attempts"] == {"succeeded": 1, "unknown_outcome": 1}


def test_resume_sends_the_same_request_again_under_the_same_id(tmp_path):
    run = failed(tmp_path, "first", TimeoutError())
    with opened(run) as connection:
        (sent,) = connection.execute(
            "SELECT request_id FROM attempts WHERE status = 'unknown_outcome'"
        ).fetchone()
    targets = primary("second")

    remaining = resume(run, targets=targets)

    ((messages, request_id),) = targets["primary"].provider.asked
    assert request_id == sent
    assert [message["content"] for message in messages] == ["How much?", "first", "How long?"]
    assert (remaining.turns, remaining.requests) == ({"primary": 1}, {"primary": 1})
    assert status(run)["status"] == "captured"
    assert status(run)["attempts"] == {"succeeded": 2, "unknown_outcome": 1}


def test_a_check_writes_nothing_and_asks_nobody(tmp_path):
    run = failed(tmp_path, "first", TimeoutError())
    before = (run / "run.sqlite3").read_bytes()
    targets = primary()

    resume(run, targets=targets, check=True)

    assert targets["primary"].provider.asked == []
    assert (run / "run.sqlite3").read_bytes() == before


def test_a_complete_capture_has_nothing_to_resume_and_needs_no_target(tmp_path):
    run = captured(tmp_path, RECORDS, targets=primary("first", "second"))
    before = (run / "run.sqlite3").read_bytes()

    assert resume(run).is_nothing

    assert (run / "run.sqlite3").read_bytes() == before


@pytest.mark.parametrize(
    ("replies", "options", "targets", "reason"),
    [
        ([TimeoutError()], {}, {}, "needs its target"),
        ([TimeoutError()], {}, primary("x", model="bot-2"), "not the one that began"),
        (
            [TimeoutError()],
            {},
            primary("x", contract=RecoveryContract("1" * 64, "stateless", "idempotent")),
            "not the one that began",
        ),
        (
            [TimeoutError()],
            {"contract": ONCE},
            primary("x", contract=ONCE),
            "may be sent once only",
        ),
        (
            [None],
            {"contract": ONCE},
            primary("x", contract=ONCE),
            "may be sent once only",
        ),
        (
            [TimeoutError()],
            {"contract": RecoveryContract("0" * 64, "opaque", "idempotent")},
            primary("x", contract=RecoveryContract("0" * 64, "opaque", "idempotent")),
            "keeps a state",
        ),
        (
            [TimeoutError()],
            {"contract": RecoveryContract("0" * 64, "stateless", "idempotent", 1)},
            primary("x", contract=RecoveryContract("0" * 64, "stateless", "idempotent", 1)),
            "tried 1 times",
        ),
        (["first", TimeoutError()], {"max_target_calls": 2}, primary("x"), "used up"),
    ],
)
def test_a_resume_is_refused_before_anything_is_written(
    tmp_path, replies, options, targets, reason
):
    run = failed(tmp_path, *replies, **options)
    before = (run / "run.sqlite3").read_bytes()

    with pytest.raises(ResumeRefusedError, match=reason):
        resume(run, targets=targets)

    assert (run / "run.sqlite3").read_bytes() == before
    assert not targets or targets["primary"].provider.asked == []


def test_a_turn_that_was_never_sent_is_sent_even_if_requests_must_not_repeat(tmp_path):
    dataset = write(tmp_path / "data.jsonl", RECORDS)

    def full_disk_after_the_first_answer(doing, steps, total):
        if doing == "Capturing" and len(asked) == 1:
            raise OSError("disk full")

    targets = primary("first", "second", contract=ONCE)
    asked = targets["primary"].provider.asked
    with pytest.raises(OSError, match="disk full"):
        capture(
            dataset,
            tmp_path / "runs",
            targets=targets,
            progress=full_disk_after_the_first_answer,
        )
    (run,) = (tmp_path / "runs").iterdir()
    assert status(run)["failure_kind"] == "pipeline_error"

    resume(run, targets=targets)

    assert len(asked) == 2
    assert status(run)["attempts"] == {"succeeded": 2}


def test_the_call_limit_stops_a_capture_before_the_next_request(tmp_path):
    run = failed(tmp_path, "first", "never asked", max_target_calls=1)

    assert status(run)["attempts"] == {"succeeded": 1}
    assert status(run)["committed_records"] == 3
    assert status(run)["failure_kind"] == "target_calls_used_up"


def test_a_request_that_was_deleted_is_missed_and_not_sent_again(tmp_path):
    run = failed(tmp_path, "first", TimeoutError(), contract=ONCE)
    with closing(sqlite3.connect(run / "run.sqlite3")) as connection, connection:
        connection.execute("DELETE FROM attempts WHERE status = 'unknown_outcome'")
    targets = primary("second", contract=ONCE)

    with pytest.raises(CorruptRunError, match=r"the request .* was sent and is gone"):
        resume(run, targets=targets)

    assert targets["primary"].provider.asked == []


def test_a_resume_can_raise_the_call_limit(tmp_path):
    run = failed(tmp_path, "first", max_target_calls=1)
    with pytest.raises(ResumeRefusedError, match=r"1 target calls are used up.*--max-target-calls"):
        resume(run, targets=primary("x"), max_target_calls=1)

    resume(run, targets=primary("x"), max_target_calls=2, check=True)
    with pytest.raises(ResumeRefusedError, match="used up"):
        resume(run, targets=primary("x"))
    resume(run, targets=primary("second"), max_target_calls=2)

    assert (status(run)["status"], status(run)["attempts"]) == ("captured", {"succeeded": 2})
    evaluate_saved(run, spec())
    assert evaluation_summary(run)["budget"]["target"]["max_calls"] == 2


def test_a_raised_call_limit_stays_when_a_capture_stops_again(tmp_path):
    run = failed(tmp_path, "first", max_target_calls=1)
    with pytest.raises(CaptureFailedError, match="timeout"):
        resume(run, targets=primary(TimeoutError()), max_target_calls=3)

    with pytest.raises(ResumeRefusedError, match="3 target calls can be raised, not lowered"):
        resume(run, targets=primary("x"), max_target_calls=2)
    resume(run, targets=primary("second"))

    assert status(run)["status"] == "captured"


def test_a_run_without_a_call_limit_gets_none_by_resuming(tmp_path):
    run = failed(tmp_path, TimeoutError())

    with pytest.raises(ResumeRefusedError, match="no limit"):
        resume(run, targets=primary("a", "b"), max_target_calls=9)


def test_a_resume_by_another_version_is_refused(tmp_path, monkeypatch):
    run = failed(tmp_path, TimeoutError())
    monkeypatch.setattr("evaluators.resuming.PACKAGE_VERSION", "99")

    with pytest.raises(ResumeRefusedError, match="this is 99"):
        resume(run, targets=primary("x"))


@pytest.mark.parametrize("name", ["dataset", "persona"])
def test_a_resume_with_other_sources_is_refused(tmp_path, name):
    run = failed(tmp_path, TimeoutError())
    other = write(tmp_path / "other.jsonl", [user("Else?")])

    with pytest.raises(ResumeRefusedError, match=f"not the {name}"):
        resume(run, targets=primary("a", "b"), **{name: other})


def test_two_targets_answer_two_streams(tmp_path):
    targets = {**primary("a", "b"), "compare": Target("bot-1", Assistant(["c", "d"]))}

    run = captured(tmp_path, RECORDS, targets=targets)

    names = sorted(path.name for path in (run / "transcripts").iterdir())
    assert names == ["bot-1-compare.jsonl", "bot-1-primary.jsonl"]
    assert [m["content"] for m in targets["compare"].provider.asked[1][0]][1] == "c"


@pytest.mark.parametrize(
    "built",
    [
        None,
        ("model",),
        ("", Assistant([])),
        ("\ud800", Assistant([])),
        ("m", object()),
        ("m", Assistant([], contract=None)),
    ],
)
def test_a_factory_that_gives_no_target_is_refused(built):
    with pytest.raises(FactoryError):
        build(lambda: built)


@pytest.mark.parametrize(
    "options",
    [
        {"configuration_digest": "short"},
        {"configuration_digest": int("1" * 64)},
        {"configuration_digest": None},
        {"session_state": "sticky"},
        {"interrupted_request": "maybe"},
        {"max_attempts": 0},
        {"max_attempts": True},
    ],
)
def test_a_contract_of_unknown_promises_is_refused(options):
    with pytest.raises(FactoryError):
        RecoveryContract(**{"configuration_digest": "0" * 64, "session_state": "opaque"} | options)


@pytest.mark.parametrize("name", ["nothing", "a:", ":b", "no_such_module:f", "json:no_function"])
def test_a_factory_that_cannot_be_loaded_is_named(name):
    with pytest.raises(FactoryError, match=name.partition(":")[0] or "form"):
        load(name)


def test_a_factory_beside_the_given_file_is_found(tmp_path):
    (tmp_path / "target_beside_it.py").write_text("def make():\n    return 7\n")

    assert load("target_beside_it:make", [tmp_path])() == 7
