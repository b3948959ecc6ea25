"""What goes out for each fixture, in a form that a person can read and judge.

python -m tests.sdk.golden_records     write the files again; read the difference before you keep it
"""

import json
from pathlib import Path

from mesedi import _client, emit_hhem, emit_promptfoo, emit_ragas
from mesedi._pieces import is_event
from mesedi._result_files import read_result
from mesedi._spelling import Speller

FIXTURES = Path(__file__).parents[1] / "fixtures"
GOLDEN = Path(__file__).parent / "golden"
OWN_METRICS = {"ragas_0.4.3_experiment": {"metrics": ["tone", "quality"]}}


def cases():
    """Every fixture file that holds results, as (tool, file)."""
    files = [*FIXTURES.glob("ragas/*.json"), *FIXTURES.glob("promptfoo/*.json*")]
    files += FIXTURES.glob("hhem/*.json")
    return sorted((file.parent.name, file) for file in files)


def records(tool, file):
    """The events that the results in `file` become: one dict each, without ids and times."""
    result = read_result(file.read_bytes(), file.name)
    if tool == "ragas":
        return list(_emitted(lambda: emit_ragas(result, **OWN_METRICS.get(file.stem, {}))))
    if tool == "hhem":
        return [
            {"case": name, **record}
            for name, case in result.items()
            for record in _emitted(lambda case=case: emit_hhem(case))
        ]
    if file.stem == "promptfoo_single_rows":
        return [
            {"why": case["why"], **record}
            for case in result
            for record in _emitted(lambda case=case: emit_promptfoo(case["row"], answers=True))
        ]
    return list(_emitted(lambda: emit_promptfoo(result, answers=True)))


def _emitted(emit):
    client, pieces = _client.capture()
    emit()
    speller = Speller(client.settings, client.ids)
    rows, answers = {}, {}
    for piece in filter(is_event, pieces):
        event = json.loads(speller.event(piece).text)
        payload = event["payload"]
        if "answer_id" in payload:
            payload["answer_id"] = answers.setdefault(payload["answer_id"], len(answers))
        row = rows.setdefault(event["execution_id"], len(rows))
        yield {"row": row, "type": event["event_type"], **payload}


def golden_file(tool, file):
    return GOLDEN / tool / f"{file.name}.records"


def main():
    for tool, file in cases():
        target = golden_file(tool, file)
        target.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(record, ensure_ascii=False) for record in records(tool, file)]
        target.write_text("".join(f"{line}\n" for line in lines), "utf-8")


if __name__ == "__main__":
    main()
