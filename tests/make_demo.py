"""Write the data of `mesedi-server demo`: what the SDK sends for real Ragas and promptfoo results, and a help desk's.

    python -m tests.make_demo

One line an execution; ids and times are made when the demo is sent.
"""

import json
from pathlib import Path

import mesedi

from tests.sdk.ingest import Ingest

FIXTURES = Path(__file__).parent / "fixtures"
RESULTS = Path(__file__).parents[1] / "mesedi_server" / "demo" / "results.jsonl"


def main() -> None:
    server = Ingest()
    mesedi.configure("mesedi_sk_demo", server.url, release="2026.11.2", environment="staging")
    mesedi.emit_ragas(_fixture("ragas/ragas_0.4.3_judged.json"))
    mesedi.emit_promptfoo(_fixture("promptfoo/promptfoo_0.123.1_core.json"), answers=True)
    _answer_the_help_desk()
    assert mesedi.flush(timeout=30) == 0
    executions: dict[str, dict] = {}
    for event in server.stored.values():
        execution = executions.setdefault(event["execution_id"], {"events": []})
        execution["events"].append({name: event[name] for name in ("event_type", "payload")})
    RESULTS.parent.mkdir(exist_ok=True)
    lines = [json.dumps(execution, ensure_ascii=False) for execution in executions.values()]
    RESULTS.write_text("\n".join(lines) + "\n", "utf-8")
    server.stop()
    print(f"{RESULTS}: {len(lines)} executions")


def _answer_the_help_desk() -> None:
    """Send enough answers, with their passages, for a group's page to say where to look first."""
    desk = _fixture("help_desk.json")
    for number, one in enumerate(desk["answers"]):
        keys = one["passages"]
        contexts = None if keys is None else [desk["passages"][key] for key in keys]
        with mesedi.execution(f"help-desk-{number}"):
            answer_id = mesedi.record_answer(one["question"], one["answer"], contexts)
            mesedi.emit_eval_score(
                desk["evaluator"],
                desk["metric"],
                one["score"],
                reason=one.get("reason"),
                answer_id=answer_id,
            )


def _fixture(name: str) -> object:
    return json.loads((FIXTURES / name).read_text("utf-8"))


if __name__ == "__main__":
    main()
