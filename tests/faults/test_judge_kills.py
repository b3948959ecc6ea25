"""The deaths of `tests/server/judges`, a few hundred times (`make test-faults`)."""

import random

import pytest

from tests.server.judges import dying
from tests.server.judges.killed import POINTS

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("point", POINTS)
def test_killed_between_two_steps_again_and_again(judged, module_database_url, point, concurrency):
    dice = random.Random(f"{point} {concurrency}")
    deaths = [(point, dice.randint(1, 4)) for _ in range(8)]

    dying.be_killed(judged, module_database_url, answers=40, concurrency=concurrency, deaths=deaths)


@pytest.mark.parametrize("seed", range(5))
def test_killed_at_random_again_and_again(judged, module_database_url, seed):
    dying.be_killed_at_random(
        judged, module_database_url, answers=200, rounds=15, dice=random.Random(seed)
    )
