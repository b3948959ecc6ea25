"""A small pipeline that uses the published SDK; runs in that SDK's own environment.

Reads MESEDI_API_KEY and MESEDI_BASE_URL. Each run names itself by its tenant. Prints the SDK's own account at the end.
"""

import json
import time
from contextlib import suppress

import mesedi

PATIENCE_S = 20.0


@mesedi.wrap(tenant_id="scores")
def scores():
    mesedi.emit_eval_score("judge/strict", "faithfulness", 0.95, passed=False, reason="claim 2")
    for score in (0.2, 0.3, 0.4):
        mesedi.emit_eval_score("judge/mild", "faithfulness", score, True)
    mesedi.emit_eval_score("judge/mild", "relevance", 0.5, True)
    mesedi.emit_eval_score("judge/rate", "hallucination_rate", 0.1, True, higher_is_better=False)
    mesedi.emit_eval_score("judge/nan", "faithfulness", float("nan"), False)


@mesedi.wrap(tenant_id="validators")
def validators():
    mesedi.validator_result("schema", True)
    mesedi.validator_result("citations", False, "no citation", "critical", "missing")


@mesedi.wrap(tenant_id="instant")
def instant():
    pass


@mesedi.wrap(tenant_id="crash")
def crash():
    raise KeyError("planned")


@mesedi.wrap(tenant_id="many-events")
def many_events():
    for number in range(230):
        mesedi.checkpoint("bulk", number=number, text="lorem ipsum " * 20)


@mesedi.wrap(tenant_id="human")
def human():
    handle = mesedi.request_human_intervention("Send the refund?", sla_seconds=60)
    handle.complete("rejected", {"amount": 10}, decided_by="ann")
    handle = mesedi.request_human_intervention("Send it now?", sla_seconds=60)
    handle.complete("timeout")


@mesedi.wrap(tenant_id="budget", budget=mesedi.Budget(max_steps=3))
def over_budget():
    for number in range(10):
        mesedi.checkpoint("step", number=number)


@mesedi.wrap(tenant_id="remote-halt", budget=mesedi.Budget(max_wall_clock_seconds=PATIENCE_S))
def halted_from_outside():
    while True:
        mesedi.checkpoint("tick")
        time.sleep(0.05)


def main():
    mesedi.configure()
    for run in (scores, validators, instant, many_events, human, over_budget, halted_from_outside):
        run()
    with suppress(KeyError):
        crash()
    is_drained = mesedi.flush(timeout=PATIENCE_S)
    stats = mesedi.stats()
    account = {name: getattr(stats, name) for name in ("delivered", "rejected", "lost", "complete")}
    print(json.dumps({"is_drained": is_drained, **account}))


main()
