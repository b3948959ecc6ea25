"""How many rows one call takes."""

from itertools import count, islice

import mesedi
import pytest

BEYOND = "rows beyond the most a call takes"


def ragas_rows():
    return ({"faithfulness": 0.5, "id": number} for number in count())


def promptfoo_rows():
    return ({"success": True, "score": 1, "testIdx": number} for number in count())


class Frame:
    """A data frame that says how many rows were asked for."""

    columns = ("faithfulness",)

    def __init__(self, size):
        self.size = size

    def head(self, size):
        return Frame(min(size, self.size))

    def to_dict(self, orient):
        assert orient == "records"
        assert self.size <= 10_001
        return [{"faithfulness": 0.5}] * self.size


@pytest.mark.parametrize(
    ("emit", "result"),
    [
        (mesedi.emit_ragas, ragas_rows()),
        (mesedi.emit_ragas, Frame(10**9)),
        (mesedi.emit_promptfoo, promptfoo_rows()),
        (mesedi.emit_hhem, [0.5] * 10_001),
    ],
    ids=["ragas", "frame", "promptfoo", "hhem"],
)
def test_a_call_takes_ten_thousand_rows_and_says_that_there_were_more(client, caplog, emit, result):
    with mesedi.execution():  # one of each row's own would fill the queue
        assert emit(result) == 10_000

    assert mesedi.stats().dropped == {BEYOND: 1}
    assert caplog.text.count("takes 10000 rows a call") == 1


@pytest.mark.parametrize("result", [list(islice(ragas_rows(), 10_000)), Frame(10_000)])
def test_exactly_ten_thousand_rows_are_taken_without_a_word(client, caplog, result):
    with mesedi.execution():
        assert mesedi.emit_ragas(result) == 10_000

    assert mesedi.stats().dropped == {}
    assert "rows a call" not in caplog.text
