"""Every fixture gives exactly the records that were read and judged by eye once."""

import json

import pytest

from tests.sdk.golden_records import cases, golden_file, records


@pytest.mark.parametrize(
    ("tool", "file"), [pytest.param(*case, id=case[1].name) for case in cases()]
)
def test_a_fixture_gives_the_records_that_were_judged(tool, file):
    kept = [json.loads(line) for line in golden_file(tool, file).read_text("utf-8").splitlines()]

    assert records(tool, file) == kept


def test_no_golden_file_is_left_over():
    kept = {golden_file(*case) for case in cases()}

    assert kept == set(golden_file("ragas", cases()[0][1]).parents[1].rglob("*.records"))
