"""A project with a judge, a real local judge, and answers for it."""

import json
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass

from mesedi_server import judging, sealing
from mesedi_server.judging import Rules, key_context
from mesedi_server.store import judge_settings
from mesedi_server.store.database import Database
from mesedi_server.store.judge_settings import NewKey
from tests.evaluators.chat_server import ChatServer, answer, serving
from tests.evaluators.judge import verdict
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant

SECRET = "the secret of the tests' own server"
KEY = "sk-of-the-judge-0123456789abcd"
RULES = Rules(SECRET, private_judges=True, timeout_s=5, first_pause_s=0.2, longest_pause_s=0.2)
PASSAGE = "Adults take 5 mg."
PLAIN = {
    "is_on": True,
    "model": "judge-1",
    "calls_per_day": 1000,
    "calls_per_month": 10_000,
    "concurrency": 1,
    "answers": "all",
    "sample_percent": 0,
    "min_correctness": 7,
    "cost_per_call_micros": None,
    "cost_per_day_micros": None,
    "cost_per_month_micros": None,
}


def fitting(handler):
    """Answer with the verdict that the request wants: supported, correctness 8."""
    payload = json.loads(handler.asked["messages"][1]["content"])
    handler.reply(200, answer(verdict(payload)))


def saying(**changes):
    def respond(handler):
        payload = json.loads(handler.asked["messages"][1]["content"])
        handler.reply(200, answer(verdict(payload, **changes)))

    return respond


@contextmanager
def judge_server(respond=fitting):
    with serving(respond) as server:
        yield server


def prompts(server: ChatServer) -> Counter:
    """How often the judge was asked what."""
    return Counter(asked["messages"][1]["content"] for _, _, asked in server.asked)


@dataclass(frozen=True)
class Judged:
    """A project whose answers are judged."""

    tenant: Tenant
    database: Database

    @property
    def pk(self) -> int:
        return self.tenant.project.pk

    def set_judge(self, url: str, key: str | None = KEY, **settings) -> None:
        sealed = key and NewKey(
            sealing.seal(SECRET, key, key_context(self.tenant.project)), judge_settings.hint_of(key)
        )
        with self.database.transaction() as connection:
            judge_settings.change(
                connection,
                self.tenant.project,
                PLAIN | {"url": url} | settings,
                sealed,
                is_key_removed=key is None,
                actor="test",
            )

    def give(self, execution_id="exec-1", text="Take 5 mg.", answer_id="a", score=0.9, **payload):
        """Send an execution with an answer, and examine it."""
        send = self.tenant.ingest
        send.post("/executions", make_execution(execution_id))
        plain = {
            "answer_id": answer_id,
            "question": "How much?",
            "answer": text,
            "context": {"passages": [PASSAGE]},
        }
        events = [make_event(execution_id, "answer", payload=plain | payload)]
        events += [make_score(score, execution_id=execution_id)]
        assert send.post("/events", events).json["rejected"] == 0
        send.patch(f"/executions/{execution_id}", make_close())
        examine_all(self.database)

    def judge(self, rules: Rules = RULES) -> None:
        judging.judge_all(self.database, rules)

    def assessments(self) -> list[tuple]:
        return self.rows(
            "SELECT x.execution_id, a.answer_id, a.outcome FROM assessments a"
            " JOIN executions x ON x.pk = a.execution_pk"
            f" WHERE a.project_pk = {self.pk} AND a.evaluator = 'faithfulness' ORDER BY 1, 2"
        )

    def outcomes(self) -> list[str]:
        return [outcome for *_, outcome in self.assessments()]

    def statuses(self) -> Counter:
        rows = self.rows(f"SELECT status FROM judge_calls WHERE project_pk = {self.pk}")
        return Counter(status for (status,) in rows)

    def waiting(self) -> int:
        return self.rows(f"SELECT count(*) FROM judge_work WHERE project_pk = {self.pk}")[0][0]

    def state(self):
        with self.database.transaction() as connection:
            return judge_settings.of_project(connection, self.pk)

    def scores(self) -> list[tuple]:
        return self.rows(
            "SELECT metric_type, score, passed, scale_min, scale_max FROM events"
            f" WHERE project_pk = {self.pk} AND evaluator_id = 'mesedi/faithfulness' ORDER BY 1"
        )

    def rows(self, statement: str) -> list[tuple]:
        with self.database.transaction() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(statement)]

    def run(self, statement: str) -> None:
        with self.database.transaction() as connection:
            connection.exec_driver_sql(statement)


def in_background(task) -> threading.Thread:
    thread = threading.Thread(target=task)
    thread.start()
    return thread


def until(condition, timeout_s=20.0) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up_at, "it never came about"
        time.sleep(0.02)
