"""Charts as numbers, and as what a browser gets of them."""

import re
from datetime import date, timedelta

import pytest

from mesedi_server.pages import charts
from mesedi_server.pages.charts import Trend
from mesedi_server.store.trends import BINS, Bin, Distribution
from tests.factories import make_score
from tests.server.examining import examine_all
from tests.server.pages.failing import fail, groups_of, run

DAYS = [date(2026, 2, 27) + timedelta(days=place) for place in range(4)]


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.mark.parametrize(
    ("number", "rounded"),
    [(0, 1), (1, 1), (2, 2), (3, 5), (5, 5), (6, 10), (10, 10), (11, 20), (99, 100), (100, 100)],
)
def test_an_axis_ends_at_a_round_number(number, rounded):
    assert charts.round_up(number) == rounded


def test_the_worst_day_reaches_the_top_and_a_single_failure_is_seen():
    outline = Trend(DAYS, [0, 1, 1000, 500], None).outline

    assert outline == "M4 27v-2h3V27M8 27v-26h3V27M12 27v-13h3V27"


def test_days_without_failures_draw_nothing():
    assert Trend(DAYS, [0, 0, 0, 0], None).outline == ""


def test_who_cannot_see_the_bars_is_told_the_numbers():
    assert Trend(DAYS, [0, 1, 2, 3], None).spoken == "2026-02-27 to 2026-03-02: 0, 1, 2, 3"


def test_parts_outside_the_scale_are_there_only_if_something_is_in_them():
    plain = Distribution(bins=[Bin()] * BINS, below=Bin(), above=Bin(), unmeasured=0)
    odd = Distribution(bins=[Bin()] * BINS, below=Bin(1), above=Bin(0, 2), unmeasured=0)

    assert len(charts.score_bars(plain)) == BINS
    titles = [bar.title for bar in charts.score_bars(odd)]
    assert (titles[0], titles[1], titles[-1]) == ("under 0", "0.00 to 0.05", "over 1")


def test_each_chart_of_a_group_has_its_numbers_in_a_table(viewer, tenant, database, project):
    for number in range(3):
        run(tenant, f"exec-{number}", make_score(0.9 if number else 0.2))
    examine_all(database)

    page = viewer.open(f"{project}/groups/{groups_of(tenant)[0]}")

    assert re.search(r"Day Failing Of Share \d{4}-\d\d-\d\d 1 3 33 %", page.text)
    assert "0.20 to 0.25 1 0" in page.text
    assert "0.90 to 0.95 0 2" in page.text
    assert page.text.count("As a table") == 2


def test_the_floor_is_drawn_where_the_pairs_own_lies(viewer, tenant, database, project):
    group = fail(tenant, database, "exec-1", make_score(0.2))
    floors = {"value": {"ragas:faithfulness": 0.8}}
    tenant.admin.put("/me/detector-thresholds/grounding_failure/per_evaluator_floors", floors)

    page = viewer.open(f"{project}/groups/{group}")

    line = next(a for tag, a in page.elements if tag == "line" and a.get("class") == "floor")
    assert (line["x1"], line["x2"]) == ("80.0%", "80.0%")
    assert "floor 0.80" in page.text


def test_where_lower_is_better_no_floor_is_drawn(viewer, tenant, database, project):
    score = make_score(0.9, False, pair="judge/hallucination", higher_is_better=False)

    page = viewer.open(f"{project}/groups/{fail(tenant, database, 'exec-1', score)}")

    assert not [a for tag, a in page.elements if tag == "line" and a.get("class") == "floor"]


@pytest.mark.parametrize("score", [1e308, -1e308, 0, 1, 1e-300])
def test_no_score_breaks_a_chart(viewer, tenant, database, project, score):
    group = fail(tenant, database, "exec-1", make_score(score, passed=False))

    page = viewer.open(f"{project}/groups/{group}")

    assert page.status == 200
    assert not re.search(r'="[^"]*(nan|inf|e\+)', page.html.partition("<main")[2].lower())


def test_a_group_whose_scores_were_not_measured_says_so(viewer, tenant, database, project):
    group = fail(tenant, database, "exec-1", make_score(None, passed=False))

    assert "None was measured." in viewer.open(f"{project}/groups/{group}").text
