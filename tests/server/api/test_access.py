"""Who may do what: keys, their scopes, and projects that do not see each other."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask

from mesedi_server.api.access import PERMISSION
from mesedi_server.store import projects
from mesedi_server.store.projects import SCOPES
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Caller, Tenant

OPEN_TO_ALL = {"/health", "/ready"}
ARGUMENTS = {
    "call_id": "call-1",
    "execution_id": "exec-1",
    "group_id": "grp-0123456789abcdef",
    "detector": "grounding_failure",
    "key": "mean_floor",
    "key_id": "key-0123456789abcdef",
}
# Two calls make what they do not find: the id is another one in each project.
MAKES_ITS_OWN = {
    ("PATCH", "/executions/<path:execution_id>"),
    ("POST", "/executions/<path:execution_id>/halt"),
}
STREAM = ("GET", "/executions/<path:execution_id>/halt-stream")


@dataclass(frozen=True)
class Route:
    method: str
    rule: str
    permission: str | None

    @property
    def scope(self) -> str:
        return (self.permission or "").removeprefix("scope ")

    def path(self, **arguments: str) -> str:
        path = self.rule
        for name, value in (ARGUMENTS | arguments).items():
            path = path.replace(f"<path:{name}>", value).replace(f"<{name}>", value)
        assert "<" not in path
        return path


def routes(app: Flask) -> list[Route]:
    return [
        Route(method, rule.rule, getattr(app.view_functions[rule.endpoint], PERMISSION, None))
        for rule in app.url_map.iter_rules()
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def api_routes(app: Flask) -> list[Route]:
    found = [route for route in routes(app) if (route.permission or "").startswith("scope ")]
    assert len(found) >= 20
    return found


def test_every_route_says_who_may_call_it(app):
    silent = [route for route in routes(app) if route.permission is None]

    assert silent == []


def test_only_health_is_open_to_all_in_the_api(app):
    known = {route.rule for route in api_routes(app)} | OPEN_TO_ALL

    for route in routes(app):
        if route.permission == "everybody" and route.rule in known:
            assert route.rule in OPEN_TO_ALL


def test_every_scope_is_one_that_a_key_can_have(app):
    assert {route.scope for route in api_routes(app)} == set(SCOPES)


BAD_HEADERS = {
    "none": None,
    "empty": "",
    "another scheme": "Basic bWVzZWRpOnNr",
    "no scheme": "mesedi_sk_dev_local_only",
    "another kind of key": "Bearer sk-123",
    "an unknown key": f"Bearer mesedi_sk_{'x' * 43}",
    "a key with a letter too few": "Bearer {}",
    "a key of letters that are no ASCII": "Bearer mesedi_sk_\xe9\xff",
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_every_route_answers_401_without_a_good_key(app, tenant, case):
    header = BAD_HEADERS[case]
    headers = {} if header is None else {"Authorization": header.format(tenant.admin.key[:-1])}

    for route in api_routes(app):
        response = Caller(app, None).send(route.method, route.path(), **headers)

        assert response.status_code == 401, route
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert response.json["ok"] is False
        assert "mesedi_sk_x" not in response.json["error"]


@pytest.mark.parametrize("held", ["ingest", "read"])
def test_every_route_answers_403_to_a_key_of_another_scope(app, tenant, held):
    caller = getattr(tenant, held)

    for route in api_routes(app):
        if route.scope != held:
            response = caller.send(route.method, route.path())

            assert response.status_code == 403, route
            assert route.scope in response.json["error"]


def test_a_key_of_scope_admin_may_do_everything(app, tenant):
    for route in api_routes(app):
        response = tenant.admin.send(route.method, route.path())

        assert response.status_code not in (401, 403), route
        response.close()


def test_a_key_may_have_several_scopes(app, database, tenant):
    with database.transaction() as connection:
        key = projects.create_key(connection, tenant.project, ["ingest", "read"])
    caller = Caller(app, key)

    answers = [
        caller.post("/events", [make_event()]),
        caller.get("/executions"),
        caller.delete("/me/detector-thresholds/grounding_failure/mean_floor"),
    ]

    assert [answer.status_code for answer in answers] == [200, 200, 403]


@pytest.mark.parametrize("ago_s", [0, 3600])
def test_an_expired_key_is_401(app, database, tenant, ago_s):
    with database.transaction() as connection:
        expired_at = datetime.now(UTC) - timedelta(seconds=ago_s)
        key = projects.create_key(connection, tenant.project, ["admin"], expires_at=expired_at)

    assert Caller(app, key).get("/executions").status_code == 401


def test_a_key_that_expires_later_is_good_until_then(app, database, tenant):
    with database.transaction() as connection:
        later = datetime.now(UTC) + timedelta(hours=1)
        key = projects.create_key(connection, tenant.project, ["read"], expires_at=later)

    assert Caller(app, key).get("/executions").status_code == 200


def test_the_scheme_may_be_written_in_any_case(app, tenant):
    caller = Caller(app, None)

    for scheme in ("Bearer", "bearer", "BEARER"):
        response = caller.get("/executions", Authorization=f"{scheme} {tenant.read.key}")
        assert response.status_code == 200


def test_a_revoked_key_is_401(app, database, tenant):
    with database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE api_keys SET revoked_at = now() WHERE project_pk = %(pk)s",
            {"pk": tenant.project.pk},
        )

    assert tenant.read.get("/executions").status_code == 401


def test_the_use_of_a_key_is_noted(database, tenant):
    tenant.read.get("/executions")

    with database.transaction() as connection:
        noted = connection.exec_driver_sql(
            "SELECT scopes, last_used_at IS NOT NULL FROM api_keys WHERE project_pk = %(pk)s",
            {"pk": tenant.project.pk},
        )
        used = {scope: is_used for (scope,), is_used in noted}
    assert used == {"ingest": False, "read": True, "admin": False}


def test_an_unknown_address_is_404_and_a_wrong_method_405_in_json(tenant):
    unknown = tenant.admin.get("/failure-group")
    wrong = tenant.admin.delete("/executions")

    assert (unknown.status_code, unknown.json["ok"]) == (404, False)
    assert (wrong.status_code, wrong.json["ok"]) == (405, False)
    assert {"GET", "POST"} <= set(wrong.headers["Allow"].split(", "))


def test_the_database_holds_no_key_that_could_be_used(database, tenant):
    with database.transaction() as connection:
        rows = connection.exec_driver_sql("SELECT k::text FROM api_keys k").scalars().all()

    for caller in (tenant.ingest, tenant.read, tenant.admin):
        assert not any(caller.key in row for row in rows)


def test_health_and_readiness_need_no_key(app):
    answers = [Caller(app, None).get(path) for path in sorted(OPEN_TO_ALL)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert all(answer.json["ok"] for answer in answers)


@pytest.fixture
def neighbour(make_tenant, database) -> Tenant:
    """A project with an execution that failed, a group, and a threshold of its own."""
    tenant = make_tenant()
    tenant.ingest.post("/executions", make_execution("exec-theirs"))
    tenant.ingest.post("/events", [make_score(0.1, execution_id="exec-theirs")])
    tenant.ingest.patch("/executions/exec-theirs", make_close())
    tenant.admin.put("/me/detector-thresholds/grounding_failure/mean_floor", {"value": 0.9})
    examine_all(database)
    return tenant


def everything(tenant: Tenant) -> list:
    """What a project shows of itself."""
    groups = tenant.read.get("/failure-groups?state=all").json["failure_groups"]
    paths = ["/executions", "/executions/exec-theirs", "/failure-groups?state=all"]
    paths += [f"/failure-groups/{group['group_id']}/history" for group in groups]
    paths += ["/me/detector-thresholds/grounding_failure/mean_floor/history"]
    return [tenant.read.get(path).json for path in paths]


def test_another_projects_ids_are_unknown_on_every_route(app, tenant, neighbour):
    (group,) = neighbour.read.get("/failure-groups").json["failure_groups"]
    foreign = {"execution_id": "exec-theirs", "group_id": group["group_id"]}
    before = everything(neighbour)

    for route in api_routes(app):
        names_an_id = any(name in route.rule for name in foreign)
        if names_an_id and (route.method, route.rule) not in {*MAKES_ITS_OWN, STREAM}:
            body = {"answer_id": "a", "label": "wrong"} if route.rule.endswith("/labels") else {}
            response = tenant.admin.send(route.method, route.path(**foreign), body)

            assert response.status_code == 404, route
            assert response.json["ok"] is False

    assert everything(neighbour) == before


def test_another_projects_halt_is_not_delivered(app, tenant, neighbour):
    tenant.ingest.patch("/executions/exec-theirs", make_close())
    neighbour.admin.post("/executions/exec-theirs/halt", {"reason": "theirs"})

    ours = tenant.ingest.get("/executions/exec-theirs/halt-stream").data
    theirs = neighbour.ingest.get("/executions/exec-theirs/halt-stream").data

    assert ours == b": subscribed execution=exec-theirs\n\n"
    assert b'{"reason":"theirs"}' in theirs


def test_the_same_ids_are_other_things_in_another_project(tenant, neighbour):
    (score,) = neighbour.read.get("/executions/exec-theirs").json["events"]
    before = everything(neighbour)

    stored = tenant.ingest.post(
        "/events", [make_event("exec-theirs", event_id=score["event_id"], payload="ours")]
    )
    closed = tenant.ingest.patch("/executions/exec-theirs", make_close("crashed"))

    assert (stored.json["accepted"], stored.json["duplicates"]) == (1, 0)
    assert closed.status_code == 200
    assert everything(neighbour) == before
    ours = tenant.read.get("/executions/exec-theirs").json
    assert ours["execution"]["status"] == "crashed"
    assert [event["payload"] for event in ours["events"]] == ["ours"]


def test_an_event_never_lands_in_another_projects_execution(tenant, neighbour):
    before = everything(neighbour)

    response = tenant.ingest.post("/events", [make_score(0.1, execution_id="exec-theirs")])

    assert response.json["accepted"] == 1
    assert everything(neighbour) == before
    assert len(tenant.read.get("/executions/exec-theirs").json["events"]) == 1


def test_lists_and_numbers_show_the_keys_project_alone(tenant, neighbour):
    lists = [
        tenant.read.get("/executions").json["executions"],
        tenant.read.get("/executions?q=exec-theirs").json["executions"],
        tenant.read.get("/failure-groups?state=all").json["failure_groups"],
    ]
    stats = tenant.read.get("/stats").json
    floor = tenant.read.get("/me/detector-thresholds/grounding_failure/mean_floor").json

    assert lists == [[], [], []]
    assert (stats["total_executions"], stats["open_failure_groups"]) == (0, 0)
    assert (floor["value"], floor["is_default"]) == (0.5, True)


def test_equal_failures_of_two_projects_are_two_groups(tenant, neighbour, database):
    tenant.ingest.post("/events", [make_score(0.1, execution_id="exec-theirs")])
    tenant.ingest.patch("/executions/exec-theirs", make_close())
    examine_all(database)

    (ours,) = tenant.read.get("/failure-groups").json["failure_groups"]
    (theirs,) = neighbour.read.get("/failure-groups").json["failure_groups"]

    assert ours["signature"] == theirs["signature"]
    assert ours["group_id"] != theirs["group_id"]
    assert (ours["occurrence_count"], theirs["occurrence_count"]) == (1, 1)


def test_a_body_cannot_choose_the_project(tenant, neighbour):
    wanted = neighbour.project.project_id

    response = tenant.ingest.post("/executions", make_execution("exec-new", project_id=wanted))
    tenant.ingest.post("/events", [make_event("exec-new", project_id=wanted)])

    assert response.status_code == 403
    assert neighbour.read.get("/executions?q=exec-new").json["executions"] == []


def test_a_key_is_never_in_an_answer_or_an_error(tenant):
    secret = f"Bearer mesedi_sk_{secrets.token_urlsafe(32)}"

    response = tenant.read.get("/executions", Authorization=secret)

    assert secret[-20:] not in response.text
    assert secret[-20:] not in str(response.headers)
