"""Lists: pages, filters, and what a list says when it is empty."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from tests.factories import NOON, at, make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant, new_tenant


def pages(tenant: Tenant, path: str, name: str, limit: int) -> list[list[dict]]:
    """Follow the cursors to the last page."""
    found, cursor = [], ""
    for _ in range(100):
        separator = "&" if "?" in path else "?"
        page = tenant.read.get(f"{path}{separator}limit={limit}&cursor={cursor}").json
        found.append(page[name])
        assert page["count"] == len(page[name]) <= page["limit"] == limit
        cursor = page["next_cursor"]
        if cursor is None:
            return found
    raise AssertionError("the pages do not end")


def ids_of(found: list[list[dict]], name: str) -> list[str]:
    return [row[name] for page in found for row in page]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 11])
def test_the_pages_have_every_execution_once_newest_first(tenant, count):
    for number in range(count):
        # Pairs with equal times: the cursor has to tell them apart.
        body = make_execution(f"exec-{number:02}", started_at=at(number // 2))
        tenant.ingest.post("/executions", body)

    found = pages(tenant, "/executions", "executions", limit=5)

    assert ids_of(found, "execution_id") == [f"exec-{n:02}" for n in reversed(range(count))]
    assert [len(page) for page in found[:-1]] == [5] * (len(found) - 1)
    assert len(found) == max(1, -(-count // 5))


def test_rows_that_arrive_meanwhile_neither_repeat_nor_hide_others(tenant):
    for number in range(10):
        tenant.ingest.post("/executions", make_execution(f"exec-{number}", started_at=at(number)))

    seen, cursor = [], ""
    for page_number in range(20):
        newer = make_execution(f"newer-{page_number}", started_at=at(100 + page_number))
        tenant.ingest.post("/executions", newer)
        page = tenant.read.get(f"/executions?limit=3&cursor={cursor}").json
        seen += [row["execution_id"] for row in page["executions"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert seen == ["newer-0", *(f"exec-{number}" for number in reversed(range(10)))]


def test_the_pages_have_every_group_and_every_member_once(tenant, database):
    for number in range(7):
        execution_id = f"exec-{number}"
        scores = [
            make_score(0.1, pair=f"judge/{metric}", execution_id=execution_id)
            for metric in "abcdefg"[: number + 1]
        ]
        tenant.ingest.post("/events", scores)
        tenant.ingest.patch(f"/executions/{execution_id}", make_close())
    examine_all(database)

    groups = pages(tenant, "/failure-groups", "failure_groups", limit=2)
    everyones = next(g for page in groups for g in page if g["metric_type"] == "a")
    members = pages(
        tenant, f"/failure-groups/{everyones['group_id']}/executions", "executions", limit=2
    )

    metrics = ids_of(groups, "metric_type")
    assert sorted(metrics) == list("abcdefg")
    times = ids_of(groups, "last_seen_at")
    assert times == sorted(times, reverse=True)
    assert ids_of(members, "execution_id") == [f"exec-{n}" for n in reversed(range(7))]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/executions", "executions"),
        ("/executions?q=nothing", "executions"),
        ("/executions?evaluator=nobody", "executions"),
        ("/failure-groups", "failure_groups"),
        ("/failure-groups?state=all", "failure_groups"),
        ("/failure-groups?q=nothing", "failure_groups"),
    ],
)
def test_an_empty_list_is_an_empty_list(tenant, path, name):
    answer = tenant.read.get(path)

    assert answer.json == {"ok": True, name: [], "count": 0, "limit": 50, "next_cursor": None}


def test_an_execution_without_anything_has_empty_lists(tenant):
    tenant.ingest.post("/executions", make_execution())

    content = tenant.read.get("/executions/exec-1").json

    assert (content["events"], content["failure_groups"]) == ([], [])
    assert content["execution"]["overflow_signatures"] == []
    assert "failure_group" not in content


def test_a_group_without_members_has_an_empty_list_and_leaves_the_default_one(tenant, database):
    tenant.ingest.post("/events", [make_score(0.1)])
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)
    (group,) = tenant.read.get("/failure-groups").json["failure_groups"]
    tenant.ingest.post("/events", [make_score(1.0), make_score(1.0)])
    examine_all(database)

    members = tenant.read.get(f"/failure-groups/{group['group_id']}/executions").json

    assert (members["executions"], members["count"]) == ([], 0)
    assert members["group_id"] == group["group_id"]
    assert tenant.read.get("/failure-groups").json["failure_groups"] == []
    (kept,) = tenant.read.get("/failure-groups?state=all").json["failure_groups"]
    assert (kept["occurrence_count"], kept["first_seen_at"]) == (0, group["first_seen_at"])


@pytest.mark.parametrize(
    ("asked", "limit"),
    [
        ("", 50),
        ("limit=", 50),
        ("limit=1", 1),
        ("limit=200", 200),
        ("limit=201", 200),
        (f"limit={'9' * 40}", 200),
        ("limit=0", 1),
        ("limit=-5", 1),
    ],
)
@pytest.mark.parametrize("path", ["/executions", "/failure-groups"])
def test_a_limit_out_of_range_is_clamped(tenant, path, asked, limit):
    assert tenant.read.get(f"{path}?{asked}").json["limit"] == limit


# The last three: an empty position, a number where a time belongs, a row beyond 64 bits.
BAD_CURSORS = ["x", "!!!", "AAAA", "%00", "a" * 5000, "W10", "WzEsMl0"]
BAD_CURSORS += ["WyIyMDI2LTEyLTAxVDEyOjAwOjAwWiIsOTk5OTk5OTk5OTk5OTk5OTk5OTk5OV0"]


def test_a_cursor_is_refused_by_every_other_list(tenant, database):
    for number in range(2):
        scores = [
            make_score(0.1, execution_id=f"exec-{number}"),
            make_score(0.1, pair="hhem/truth", execution_id=f"exec-{number}"),
        ]
        tenant.ingest.post("/events", scores)
        tenant.ingest.patch(f"/executions/exec-{number}", make_close())
        tenant.admin.patch("/project/name", {"name": f"{tenant.project.name} {number}"})
    examine_all(database)
    group = tenant.read.get("/failure-groups").json["failure_groups"][0]["group_id"]
    lists = ("/executions", "/failure-groups", f"/failure-groups/{group}/executions", "/audit-log")
    cursors = {path: tenant.admin.get(f"{path}?limit=1").json["next_cursor"] for path in lists}

    statuses = {
        (answered, asked): tenant.admin.get(f"{asked}?cursor={cursor}").status_code
        for answered, cursor in cursors.items()
        for asked in lists
    }

    assert statuses == {
        (answered, asked): 200 if answered == asked else 400
        for answered in lists
        for asked in lists
    }


@pytest.mark.parametrize("cursor", BAD_CURSORS)
@pytest.mark.parametrize("path", ["/executions", "/failure-groups"])
def test_a_cursor_that_no_list_has_answered_is_400(tenant, path, cursor):
    response = tenant.read.get(f"{path}?cursor={cursor}")

    assert response.status_code == 400
    assert response.json["error"].startswith("cursor")


@pytest.mark.parametrize(
    "query",
    [
        "limit=many",
        "limit=1.5",
        "since=yesterday",
        "until=2026-13-01",
        "since=0001-01-01T00:00:00%2B05:00",
        f"q={'x' * 257}",
    ],
)
@pytest.mark.parametrize("path", ["/executions", "/failure-groups"])
def test_a_filter_that_cannot_be_read_is_400_with_its_name(tenant, path, query):
    response = tenant.read.get(f"{path}?{query}")

    assert response.status_code == 400
    assert response.json["error"].startswith(query.partition("=")[0])


def test_an_unknown_state_is_400_with_those_that_exist(tenant):
    response = tenant.read.get("/failure-groups?state=open,closed")

    assert response.status_code == 400
    assert "closed" in response.json["error"]
    assert "acknowledged" in response.json["error"]


def test_an_unknown_parameter_is_left_out(tenant):
    assert tenant.read.get("/executions?offset=0&colour=red").status_code == 200


RUNS = [
    # execution, seconds after noon, fields, pairs that fail
    ("exec-a", 0, {"release": "v1", "environment": "prod"}, ["ragas/faithfulness"]),
    ("exec-b", 60, {"release": "v1", "environment": "dev"}, ["ragas/relevance", "judge/tone"]),
    ("exec-c", 120, {"release": "v2", "environment": "prod"}, ["judge/tone"]),
    ("exec-100%", 180, {"release": "v2"}, []),
    ("exec_d", 240, {}, ["hhem/faithfulness"]),
]


@pytest.fixture(scope="module")
def filled(app, database) -> Tenant:
    """A project with a few executions and groups; tests only read it."""
    tenant = new_tenant(app, database)
    for execution_id, seconds, fields, pairs in RUNS:
        started = make_execution(execution_id, started_at=at(seconds), **fields)
        tenant.ingest.post("/executions", started)
        good = make_score(0.9, pair="ragas/good", execution_id=execution_id)
        bad = [make_score(0.1, pair=pair, execution_id=execution_id) for pair in pairs]
        tenant.ingest.post("/events", [good, *bad])
        status = "halted" if execution_id == "exec-c" else "completed"
        tenant.ingest.patch(f"/executions/{quote(execution_id)}", make_close(status))
    crash = make_close("crashed", crash_signature="KeyError_in_agent")
    tenant.ingest.post("/executions", make_execution("exec-crash", started_at=at(300)))
    tenant.ingest.patch("/executions/exec-crash", crash)
    tenant.ingest.post("/events", [make_event("exec-open", "validator_result")])
    tenant.ingest.post("/executions", make_execution("exec-open", started_at=at(360)))
    examine_all(database)
    return tenant


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status=halted", ["exec-c"]),
        ("status=started", ["exec-open"]),
        ("status=unheard-of", []),
        ("release=v1", ["exec-b", "exec-a"]),
        ("release=V1", []),
        ("environment=prod", ["exec-c", "exec-a"]),
        ("release=v1&environment=prod", ["exec-a"]),
        ("evaluator=judge", ["exec-c", "exec-b"]),
        ("metric=faithfulness", ["exec_d", "exec-a"]),
        ("evaluator=ragas&metric=faithfulness", ["exec-a"]),
        ("evaluator_id=hhem&metric_type=faithfulness", ["exec_d"]),
        ("evaluator=judge&metric=faithfulness", []),
        ("q=EXEC-C", ["exec-crash", "exec-c"]),
        ("q=keyerror", ["exec-crash"]),
        ("q=%25", ["exec-100%"]),
        ("q=c_d", ["exec_d"]),
        ("q=\\", []),
        ("q=%00", []),
        (f"since={at(300)}", ["exec-open", "exec-crash"]),
        (f"until={at(60)}", ["exec-a"]),
        (f"since={at(60)}&until={at(180)}", ["exec-c", "exec-b"]),
        ("since=2026-12-01T12:05:00", ["exec-open", "exec-crash"]),
        ("since=2026-12-01T13:05:00%2B01:00", ["exec-open", "exec-crash"]),
        ("since=2026-12-01T13:05:00+01:00", ["exec-open", "exec-crash"]),
        ("until=2026-12-01", []),
        ("release=&status=halted", ["exec-c"]),
    ],
)
def test_executions_are_filtered(filled, query, expected):
    rows = filled.read.get(f"/executions?{query}").json["executions"]

    assert [row["execution_id"] for row in rows] == expected


def test_a_filter_holds_on_every_page(filled):
    found = pages(filled, "/executions?release=v1", "executions", limit=1)

    assert ids_of(found, "execution_id") == ["exec-b", "exec-a"]


LONG_AGO, SOON = (NOON - timedelta(days=400)).isoformat(), (NOON + timedelta(days=4000)).isoformat()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", {"faithfulness", "relevance", "tone", "hhem", "crash"}),
        ("failure_class=crashes", {"crash"}),
        ("class=crashes", {"crash"}),
        ("failure_class=grounding_failure", {"faithfulness", "relevance", "tone", "hhem"}),
        ("failure_class=unheard_of", set()),
        ("evaluator=ragas", {"faithfulness", "relevance"}),
        ("metric=faithfulness", {"faithfulness", "hhem"}),
        ("evaluator=hhem&metric=faithfulness", {"hhem"}),
        ("q=TONE", {"tone"}),
        ("q=_in_", {"crash"}),
        ("release=v2", {"tone"}),
        ("release=v1", {"faithfulness", "relevance", "tone"}),
        ("release=v1&environment=dev", {"relevance", "tone"}),
        ("release=v2&environment=dev", set()),
        (f"since={quote(LONG_AGO)}&until={quote(SOON)}&q=hhem", {"hhem"}),
        (f"since={quote(SOON)}", set()),
        (f"until={quote(LONG_AGO)}", set()),
        ("state=open", {"faithfulness", "relevance", "tone", "hhem", "crash"}),
        ("state=resolved", set()),
        ("state=all&q=crash", set()),
    ],
)
def test_groups_are_filtered(filled, query, expected):
    names = {
        "grounding_failure:ragas:faithfulness": "faithfulness",
        "grounding_failure:ragas:relevance": "relevance",
        "grounding_failure:judge:tone": "tone",
        "grounding_failure:hhem:faithfulness": "hhem",
        "KeyError_in_agent": "crash",
    }

    rows = filled.read.get(f"/failure-groups?{query}").json["failure_groups"]

    assert {names[row["signature"]] for row in rows} == expected


def test_the_default_list_has_what_needs_somebody(tenant, database):
    actions = {"a": None, "b": "acknowledge", "c": "resolve", "d": "ignore"}
    tenant.ingest.post("/events", [make_score(0.1, pair=f"judge/{metric}") for metric in actions])
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)
    for group in tenant.read.get("/failure-groups").json["failure_groups"]:
        if action := actions[group["metric_type"]]:
            tenant.admin.post(f"/failure-groups/{group['group_id']}/{action}")

    def metrics(query: str) -> set[str]:
        rows = tenant.read.get(f"/failure-groups?{query}").json["failure_groups"]
        return {row["metric_type"] for row in rows}

    assert metrics("") == {"a", "b"}
    assert metrics("include_resolved=true") == {"a", "b", "c"}
    assert metrics("state=resolved,ignored") == {"c", "d"}
    assert metrics("state=all") == {"a", "b", "c", "d"}


def test_stats_count_what_there_is(filled):
    now = datetime.now(UTC)

    stats = filled.read.get("/stats").json

    assert (stats["total_executions"], stats["completed_executions"]) == (7, 4)
    # The crash started at noon of a day that may be long ago when this runs.
    assert stats["crashed_24h"] == int(now - (NOON + timedelta(seconds=300)) < timedelta(hours=24))
    assert stats["open_failure_groups"] == 5


def test_what_is_done_to_a_group_is_in_its_history(tenant, database):
    tenant.ingest.post("/events", [make_score(0.1)])
    tenant.ingest.patch("/executions/exec-1", make_close())
    examine_all(database)
    (group,) = tenant.read.get("/failure-groups").json["failure_groups"]
    path = f"/failure-groups/{group['group_id']}"

    for _ in range(2):
        tenant.admin.post(f"{path}/resolve", {"reason": "  fixed\x07 in v2 \N{SNOWMAN}  "})
    tenant.admin.post(f"{path}/unresolve", b"not json")

    lines = tenant.read.get(f"{path}/history").json["history"]
    assert [(line["kind"], line["note"]) for line in lines] == [
        ("reopened", None),
        ("resolved", "fixed in v2 \N{SNOWMAN}"),
        ("first_seen", None),
    ]
    assert lines[0]["actor"] == lines[1]["actor"]
    assert lines[0]["actor"].startswith("key key-")
