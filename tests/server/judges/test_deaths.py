"""kill -9 of what asks judges, between any two steps; `tests/faults` does it some hundred times."""

import random

from tests.server.judges import dying
from tests.server.judges.killed import POINTS


def test_killed_between_any_two_steps_it_asks_nothing_again_and_loses_nothing(
    judged, module_database_url
):
    deaths = [(point, 1) for point in POINTS]

    killed = dying.be_killed(
        judged, module_database_url, answers=2 * len(deaths), concurrency=1, deaths=deaths
    )

    assert killed == len(deaths)


def test_killed_at_random_it_asks_nothing_again_and_loses_nothing(judged, module_database_url):
    dying.be_killed_at_random(
        judged, module_database_url, answers=40, rounds=2, dice=random.Random(7)
    )
