"""The accidents of detection and of assessing, a few hundred times each (`make test-faults`, some twenty minutes)."""

import random

import pytest

from tests.server.assessments import accidents as of_assessing
from tests.server.detection import accidents as of_detection

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("accidents", [of_detection, of_assessing], ids=["detection", "assessing"])
@pytest.mark.parametrize("seed", range(10))
def test_accidents_lose_nothing_and_double_nothing(
    database_url, broker_url, tmp_path, seed, accidents
):
    accidents.go_through(
        database_url, broker_url, tmp_path / "log", rounds=30, dice=random.Random(seed)
    )
