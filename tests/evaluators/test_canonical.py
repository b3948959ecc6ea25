import json

import pytest

from evaluators.canonical import ListDigest, canonical, digest, parsed

VALUES = [
    'a\u2028"\\\x01é\U0001f600\ud800',
    -0.0,
    1e16,
    1e300,
    10**30,
    None,
    True,
    [],
    {},
    {"b": [1.5, (2, "x")], "a": {"z": "ä", "y": None}},
    {1: "a number", 2: "for a name"},
]


@pytest.mark.parametrize("value", VALUES)
def test_a_value_is_written_as_the_standard_library_writes_it(value):
    written = canonical(value)

    expected = json.dumps(
        value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )
    assert written == expected
    assert parsed(written) == json.loads(expected)


def test_what_is_no_json_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]

    with pytest.raises(ValueError, match="JSON compliant"):
        canonical([float("nan")])
    with pytest.raises(TypeError):
        canonical({"a": object()})
    with pytest.raises(RecursionError):
        canonical(deep)


def test_a_list_that_comes_in_pieces_has_the_digest_of_the_list():
    whole = ListDigest()

    whole.add("1")
    whole.add('"b",[3]')
    whole.add_values(({"c": 4}, None))

    assert whole.hexdigest() == digest([1, "b", [3], {"c": 4}, None])
