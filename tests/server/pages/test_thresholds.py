"""The form that changes thresholds, its preview, its history."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from detectors import DETECTORS
from mesedi_server.errors import ConflictError
from mesedi_server.pages import tuning
from mesedi_server.pages.access import Visit
from mesedi_server.store import rollups, thresholds
from mesedi_server.store.people import Membership, Session
from tests.factories import make_score
from tests.server.examining import examine_all
from tests.server.pages.failing import run

GROUNDING = "/me/detector-thresholds/grounding_failure"


@pytest.fixture
def project(tenant) -> str:
    return f"/p/{tenant.project.project_id}"


@pytest.fixture
def form_address(project) -> str:
    return f"{project}/thresholds/grounding_failure"


@pytest.fixture
def scored(tenant, database) -> None:
    """Three executions of today with means 0.2, 0.4 and 0.6, of which two fail."""
    now = datetime.now(UTC).isoformat()
    for number, score in enumerate((0.2, 0.4, 0.6)):
        run(tenant, f"exec-{number}", make_score(score), started_at=now)
    examine_all(database)


def values(tenant, detector: str = "grounding_failure") -> dict:
    shown = tenant.read.get(f"/me/detector-thresholds/{detector}").json
    return {one["threshold_key"]: one["value"] for one in shown["thresholds"]}


def version(tenant, detector: str = "grounding_failure") -> int:
    return tenant.read.get(f"/me/detector-thresholds/{detector}").json["version"]


def test_a_project_without_settings_shows_the_defaults(viewer, project):
    page = viewer.open(f"{project}/thresholds")

    assert page.status == 200
    for name, detector in DETECTORS.items():
        assert page.links[name] == f"{project}/thresholds/{name}"
        assert all(knob in page.text for knob in detector.knobs)
    assert "set by this project" not in page.text


def test_what_the_project_has_set_stands_beside_the_default(viewer, tenant, project):
    tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": 0.65})

    page = viewer.open(f"{project}/thresholds")

    assert "0.65 set by this project 0.5" in page.text


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_form_that_is_sent_as_it_stands_changes_nothing(member, tenant, project, detector):
    form = member.open(f"{project}/thresholds/{detector}").form_with("Save")

    page = member.send(form, "Save")

    assert "Nothing was changed" in page.text
    assert version(tenant, detector) == 0


def test_a_saved_value_is_in_force_and_in_the_history_with_who_and_why(staff, tenant, form_address):
    browser = staff.browser("member", "Mira the careful")
    form = browser.open(form_address).form_with("Save")

    page = browser.send(form, "Save", mean_floor="0.65", reason="Short answers score <low>")

    assert "Saved." in page.text
    assert values(tenant)["mean_floor"] == 0.65
    assert "1 mean_floor: 0.65 Mira the careful Short answers score <low>" in page.text
    assert dict(page.form_with("Save").fields)["mean_floor"] == "0.65"


def test_two_knobs_are_saved_at_once_as_two_versions(member, tenant, form_address):
    form = member.open(form_address).form_with("Save")

    member.send(
        form,
        "Save",
        mean_floor="0.4",
        per_evaluator_floors__new__pair=["ragas:faithfulness", "", ""],
        per_evaluator_floors__new__floor=["0.8", "", ""],
    )

    assert values(tenant) == {
        "mean_floor": 0.4,
        "per_evaluator_floors": {"ragas:faithfulness": 0.8},
    }
    assert version(tenant) == 2


def test_an_empty_field_returns_to_the_default(member, tenant, form_address):
    tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": 0.65})
    form = member.open(form_address).form_with("Save")

    page = member.send(form, "Save", mean_floor="")

    assert values(tenant)["mean_floor"] == 0.5
    assert "mean_floor: back to the default" in page.text


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"mean_floor": "1.5"}, "mean_floor out of range [0, 1]: 1.5"),
        ({"mean_floor": "-0.1"}, "mean_floor out of range"),
        ({"mean_floor": "much"}, 'mean_floor must be a number, not "much"'),
        ({"mean_floor": "nan"}, "mean_floor must be a number"),
        ({"mean_floor": "1e400"}, "mean_floor out of range"),
        ({"mean_floor": "9" * 6000}, "mean_floor"),
        ({"new__pair": ["a:b"], "new__floor": ["7"]}, "out of range [0, 1]: 7"),
        ({"new__pair": ["a:b"], "new__floor": ["x"]}, "must be a number"),
        ({"new__pair": ["a:b"], "new__floor": [""]}, "'a:b' has no floor"),
        ({"new__pair": [""], "new__floor": ["0.5"]}, "'0.5' has no evaluator:metric"),
        ({"new__pair": ["no colon"], "new__floor": ["0.5"]}, "is not evaluator_id:metric_type"),
        ({"new__pair": ["a:b", "a:b"], "new__floor": ["0.5", "0.6"]}, "'a:b' has two floors"),
        ({"new__pair": ["a:\0"], "new__floor": ["0.5"]}, "a character that is no text"),
        ({"new__pair": [f"{n}:x" for n in range(51)], "new__floor": ["0.5"] * 51}, "at most 50"),
    ],
)
def test_a_value_that_cannot_be_is_refused_and_stays_in_its_form(
    member, tenant, form_address, fields, reason
):
    form = member.open(form_address).form_with("Save")
    named = {
        name if name == "mean_floor" else f"per_evaluator_floors__{name}": value
        for name, value in fields.items()
    }

    for button in ("Save", "Preview"):
        page = member.send(form, button, reason="I think so", **named)

        assert page.status == 400
        assert reason in page.text
        assert version(tenant) == 0
        fields_now = page.form_with("Save").fields
        assert ("reason", "I think so") in fields_now
        for name, value in named.items():
            entered = [value] if isinstance(value, str) else [one for one in value if one]
            kept = [v for n, v in fields_now if n == name.replace("__", ".") and v]
            assert kept == entered


@pytest.mark.parametrize(
    ("detector", "fields", "expected"),
    [
        ("hitl_rejection_spike", {"min_sample": "7"}, {"min_sample": 7}),
        ("hitl_rejection_spike", {"rejected_rate": "1"}, {"rejected_rate": 1.0}),
        ("hitl_timeout", {"fire_modes": ["explicit"]}, {"fire_modes": ["explicit"]}),
    ],
)
def test_every_kind_of_knob_can_be_saved(member, tenant, project, detector, fields, expected):
    form = member.open(f"{project}/thresholds/{detector}").form_with("Save")

    page = member.send(form, "Save", **fields)

    assert "Saved." in page.text
    assert values(tenant, detector).items() >= expected.items()


@pytest.mark.parametrize(
    ("detector", "fields"),
    [
        ("hitl_rejection_spike", {"min_sample": "7.5"}),
        ("hitl_rejection_spike", {"rejected_rate": "0"}),
        ("hitl_timeout", {"fire_modes": []}),
        ("hitl_timeout", {"fire_modes": ["never"]}),
    ],
)
def test_every_kind_of_knob_refuses_what_it_does_not_take(
    member, tenant, project, detector, fields
):
    form = member.open(f"{project}/thresholds/{detector}").form_with("Save")

    page = member.send(form, "Save", **fields)

    assert page.status == 400
    assert version(tenant, detector) == 0


def test_pairs_that_the_project_sends_are_offered(member, tenant, database, form_address):
    run(tenant, "exec-1", make_score(0.9), make_score(0.9, pair="hhem/consistency"))
    examine_all(database)

    page = member.open(form_address)

    assert {"ragas:faithfulness", "hhem:consistency"} <= set(page.names)
    options = {attributes.get("value") for tag, attributes in page.elements if tag == "option"}
    assert {"ragas:faithfulness", "hhem:consistency"} <= options


def test_pairs_beyond_those_in_view_are_counted_and_can_be_set(
    member, tenant, database, form_address
):
    scores = [make_score(0.9, pair=f"judge-{number:03}/m") for number in range(23)]
    run(tenant, "exec-1", *scores)
    examine_all(database)
    page = member.open(form_address)
    floors = ["0.8" if number == 22 else "" for number in range(23)]

    member.send(page.form_with("Save"), "Save", per_evaluator_floors__floor=floors)

    assert "3 more pairs that this project sends" in page.text
    assert "more pairs than these" not in page.text
    assert values(tenant)["per_evaluator_floors"] == {"judge-022:m": 0.8}


def test_a_form_has_a_bounded_number_of_pairs_and_says_so(member, tenant, database, form_address):
    scores = [make_score(0.9, pair=f"judge-{number:03}/m") for number in range(103)]
    run(tenant, "exec-1", *scores)
    examine_all(database)

    page = member.open(form_address)

    sent = [name for name, _ in page.form_with("Save").fields]
    assert sent.count("per_evaluator_floors.pair") == 100
    assert "80 more pairs that this project sends" in page.text
    assert "This project sends more pairs than these; type the others above." in page.text


@pytest.mark.parametrize(
    "evaluator", ["ragas", "a:b", "two\nlines", " blanks ", "ü\u202e%25", '"<b>']
)
def test_a_floor_of_a_sent_pair_keeps_the_name_as_it_was_sent(
    member, tenant, database, form_address, evaluator
):
    run(tenant, "exec-1", make_score(0.9, evaluator_id=evaluator))
    examine_all(database)
    form = member.open(form_address).form_with("Save")

    page = member.send(form, "Save", per_evaluator_floors__floor="0.8")
    again = member.send(page.form_with("Save"), "Save")

    assert values(tenant)["per_evaluator_floors"] == {f"{evaluator}:faithfulness": 0.8}
    assert "Nothing was changed" in again.text


def test_a_preview_says_what_would_change_and_changes_nothing(
    viewer, tenant, database, form_address, scored
):
    form = viewer.open(form_address).form_with("Preview")

    page = viewer.send(form, "Preview", mean_floor="0.7")

    assert "Of 3 executions examined in the last 7 days, 1 would start" in page.text
    assert "0 would stop" in page.text
    assert page.links["exec-2"].endswith("/executions/exec-2")
    assert "exec-0" not in page.links
    assert dict(page.form_with("Preview").fields)["mean_floor"] == "0.7"
    assert version(tenant) == 0
    with database.transaction() as connection:
        assert connection.execute(text("SELECT count(*) FROM occurrences")).scalar_one() >= 2
    members = tenant.read.get("/failure-groups").json["failure_groups"][0]["occurrence_count"]
    assert members == 2


def test_a_preview_names_groups_that_would_fall_silent_or_open(
    viewer, tenant, form_address, scored
):
    page = viewer.open(form_address)

    silent = viewer.send(page.form_with("Preview"), "Preview", mean_floor="0.1")

    assert "Groups that would fall silent" in silent.text
    assert silent.links["ragas · faithfulness"].startswith("/p/")


def test_a_group_that_does_not_exist_yet_has_no_link(viewer, tenant, database, form_address):
    run(tenant, "exec-1", make_score(0.9), started_at=datetime.now(UTC).isoformat())
    examine_all(database)
    form = viewer.open(form_address).form_with("Preview")

    page = viewer.send(form, "Preview", mean_floor="1")

    assert "Groups that would open" in page.text
    assert "ragas · faithfulness" not in page.links


@pytest.mark.parametrize("days", ["8", "0", "x", ""])
def test_a_preview_looks_back_over_the_offered_spans_only(viewer, form_address, days):
    form = viewer.open(form_address).form_with("Preview")

    assert viewer.send(form, "Preview", days=days).status == 400
    assert viewer.send(form, "Preview", days="90").status == 200


@pytest.mark.parametrize("detector", ["hitl_timeout", "hitl_rejection_spike"])
def test_a_detector_without_a_preview_offers_none(member, project, detector):
    page = member.open(f"{project}/thresholds/{detector}")

    assert page.has_button("Save")
    assert not page.has_button("Preview")


def test_a_form_from_before_somebody_elses_change_is_not_saved_over_it(
    member, tenant, form_address
):
    form = member.open(form_address).form_with("Save")
    tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": 0.3})

    page = member.send(form, "Save", mean_floor="0.8")

    assert page.status == 409
    assert "somebody changed these settings" in page.text
    assert values(tenant)["mean_floor"] == 0.3
    again = member.send(page.form_with("Save"), "Save")
    assert "Saved." in again.text
    assert values(tenant)["mean_floor"] == 0.8


def test_an_earlier_value_is_one_click_away(member, tenant, form_address):
    for value in (0.3, 0.8):
        tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": value})
    button = "Return mean_floor to version 1"
    page = member.open(form_address)

    page = member.send(page.form_with(button), button)

    assert values(tenant)["mean_floor"] == 0.3
    assert "back to version 1" in page.text
    assert not page.has_button("Return mean_floor to version 3")


def test_the_default_is_one_click_away(member, tenant, form_address):
    tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": 0.8})
    button = "Return mean_floor to its default"
    page = member.open(form_address)

    page = member.send(page.form_with(button), button)

    assert values(tenant)["mean_floor"] == 0.5
    assert version(tenant) == 2
    assert not page.has_button(button)


@pytest.mark.parametrize(
    ("key", "number", "status"),
    [
        ("mean_floor", "9", 404),
        ("mean_floor", "x", 400),
        ("mean_floor", "", 400),
        ("per_evaluator_floors", "1", 404),
        ("no_such_knob", "1", 404),
    ],
)
def test_a_return_to_what_never_was_is_refused(member, tenant, form_address, key, number, status):
    for value in (0.3, 0.8):
        tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": value})
    button = "Return mean_floor to version 1"
    form = member.open(form_address).form_with(button)

    page = member.send(form, button, key=key, version=number)

    assert page.status == status
    assert version(tenant) == 2


def test_an_unknown_detector_is_not_found(viewer, project):
    assert viewer.open(f"{project}/thresholds/crashes").status == 404


def test_the_pairs_of_a_project_are_listed_each_once(tenant, other, database):
    run(other, "exec-1", make_score(0.9, pair="other/judge"))
    for number in range(3):
        pairs = ("b/x", "a/y", "a/x", "a/")
        run(tenant, f"exec-{number}", *(make_score(0.9, pair=pair) for pair in pairs))
    examine_all(database)

    with database.transaction() as connection:
        everything = rollups.pairs_of_project(connection, tenant.project.pk)
        some = rollups.pairs_of_project(connection, tenant.project.pk, limit=2)

    assert everything == [("a", ""), ("a", "x"), ("a", "y"), ("b", "x")]
    assert some == everything[:2]


def test_a_change_at_the_same_moment_undoes_ones_own(tenant, database):
    person = Membership(tenant.project, "member")
    with database.transaction() as connection:
        seen = thresholds.in_force(connection, tenant.project.pk, "grounding_failure")
    tenant.admin.put(f"{GROUNDING}/mean_floor", {"value": 0.3})

    def save() -> None:
        with database.transaction() as connection:
            visit = Visit(connection, Session(1, "Mira", ""), [person], person)
            tuning.keep(visit, "grounding_failure", seen, {"mean_floor": 0.8}, None)

    with pytest.raises(ConflictError):
        save()

    assert values(tenant)["mean_floor"] == 0.3
    assert version(tenant) == 1
