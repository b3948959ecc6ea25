"""The accidents of `tests/server/detection`, a few hundred times (`make test-faults`, some ten minutes)."""

import random

import pytest

from tests.server.detection import accidents

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("seed", range(10))
def test_accidents_lose_nothing_and_double_nothing(database_url, broker_url, tmp_path, seed):
    accidents.go_through(
        database_url, broker_url, tmp_path / "log", rounds=30, dice=random.Random(seed)
    )
