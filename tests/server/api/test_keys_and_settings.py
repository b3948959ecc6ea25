"""`/api-keys`, `/me`, `/project`, `/audit-log` (wire.md 1.9)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.server.tenants import Caller


def key_ids(tenant) -> dict[str, str]:
    """Ids of the keys by their scopes."""
    keys = tenant.read.get("/api-keys").json["api_keys"]
    return {key["scope"]: key["key_id"] for key in keys}


def test_a_list_of_keys_has_their_beginnings_and_never_a_key(tenant):
    response = tenant.read.get("/api-keys")

    rows = response.json["api_keys"]
    assert response.json["count"] == 3
    assert {row["scope"]: row["role"] for row in rows} == {
        "ingest": "write",
        "read": "read",
        "admin": "admin",
    }
    row = next(row for row in rows if row["scope"] == "read")
    assert tenant.read.key.startswith(row["key_prefix"])
    assert len(row["key_prefix"]) == 14
    assert row["project_id"] == tenant.project.project_id
    assert row["last_used_at"] is not None
    assert tenant.read.key not in response.get_data(as_text=True)


@pytest.mark.parametrize(
    ("body", "scopes", "role"),
    [
        ({}, ["ingest"], "write"),
        ({"role": "read"}, ["read"], "read"),
        ({"role": "write"}, ["ingest", "read"], "write"),
        ({"role": "admin"}, ["admin"], "admin"),
        ({"scopes": ["read", "ingest", "read"]}, ["ingest", "read"], "write"),
    ],
)
def test_a_made_key_is_answered_once_and_good_for_what_was_asked(app, tenant, body, scopes, role):
    made = tenant.admin.post("/api-keys", {"name": "ci", **body}).json

    assert made["ok"] is True
    assert made["role"] == role
    assert made["scopes"] == scopes
    assert made["raw_key"].startswith(made["prefix"])
    assert "not shown again" in made["warning"]
    me = Caller(app, made["raw_key"]).get("/me")
    assert me.status_code == (200 if {"read", "admin"} & set(scopes) else 403)


def test_a_key_may_be_made_to_expire(tenant):
    later = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)

    made = tenant.admin.post("/api-keys", {"expires_at": later.isoformat()}).json

    listed = tenant.read.get("/api-keys").json["api_keys"]
    found = next(key for key in listed if key["key_id"] == made["key_id"])
    assert datetime.fromisoformat(found["expires_at"]) == later
    assert found["is_expired"] is False


@pytest.mark.parametrize(
    "body",
    [
        {"role": "owner"},
        {"scopes": []},
        {"scopes": ["root"]},
        {"scopes": "admin"},
        {"scopes": ["read"], "role": "admin"},
        {"scope": "read"},
        {"name": "x" * 81},
        {"name": 7},
        {"name": "a\0b"},
        {"expires_at": "2020-01-01T00:00:00Z"},
        {"expires_at": "soon"},
        {"expires_at": float("nan")},
        [],
    ],
)
def test_a_key_that_means_nothing_is_refused(tenant, body):
    response = tenant.admin.post("/api-keys", body)

    assert response.status_code == 400
    assert tenant.read.get("/api-keys").json["count"] == 3


def test_a_revoked_key_is_refused_and_listed_no_more(tenant):
    tenant.ingest.post("/events", [])
    response = tenant.admin.delete(f"/api-keys/{key_ids(tenant)['ingest']}")

    assert response.json["ok"] is True
    assert tenant.ingest.post("/events", []).status_code == 401
    assert "ingest" not in key_ids(tenant)


def test_the_last_admin_key_and_the_last_key_stay(tenant):
    ids = key_ids(tenant)

    refused = tenant.admin.delete(f"/api-keys/{ids['admin']}")
    for scope in ("ingest", "read"):
        assert tenant.admin.delete(f"/api-keys/{ids[scope]}").status_code == 200
    last = tenant.admin.delete(f"/api-keys/{ids['admin']}")

    assert refused.status_code == last.status_code == 409
    assert "last key of scope admin" in refused.json["error"]
    assert "last key" in last.json["error"]
    assert tenant.admin.get("/me").status_code == 200


def test_a_second_revocation_changes_nothing(tenant):
    path = f"/api-keys/{key_ids(tenant)['read']}"

    first = tenant.admin.delete(path).json
    second = tenant.admin.delete(path).json

    assert first == second
    actions = [e["action"] for e in tenant.admin.get("/audit-log").json["events"]]
    assert actions == ["key.revoked"]


def test_a_key_of_another_project_is_unknown(tenant, make_tenant):
    other = make_tenant()

    response = tenant.admin.delete(f"/api-keys/{key_ids(other)['ingest']}")

    assert response.status_code == 404
    assert other.read.get("/api-keys").json["count"] == 3


def test_a_key_knows_whom_it_speaks_for(tenant):
    me = tenant.read.get("/me").json

    assert me["project_id"] == tenant.project.project_id
    assert me["project_name"] == tenant.project.name
    assert me["scopes"] == ["read"]
    assert me["key_id"] == key_ids(tenant)["read"]


def test_a_project_is_renamed(tenant):
    response = tenant.admin.patch("/project/name", {"name": f" renamed {tenant.project.pk} "})

    assert response.json["name"] == f"renamed {tenant.project.pk}"
    assert tenant.read.get("/project").json["name"] == f"renamed {tenant.project.pk}"


@pytest.mark.parametrize("name", ["", "  ", "x" * 81, "a\u0007b", "a\0b", None, 5])
def test_a_project_is_not_called_anything(tenant, name):
    assert tenant.admin.patch("/project/name", {"name": name}).status_code == 400


def test_the_audit_log_says_who_did_what_to_what(tenant):
    made = tenant.admin.post("/api-keys", {"name": "ci", "role": "read"}).json
    tenant.admin.put("/me/detector-thresholds/grounding_failure/mean_floor", {"value": 0.7})

    lines = tenant.admin.get("/audit-log").json["events"]

    admin = f"key {key_ids(tenant)['admin']}"
    assert [(line["actor"], line["action"], line["subject"]) for line in lines] == [
        (admin, "threshold.changed", "grounding_failure.mean_floor"),
        (admin, "key.created", made["key_id"]),
    ]
    assert lines[1]["details"] == {"name": "ci", "scopes": ["read"]}
    assert made["raw_key"] not in str(lines)


def test_the_audit_log_has_pages_that_join_without_gap(tenant):
    for number in range(5):
        tenant.admin.patch("/project/name", {"name": f"{tenant.project.name} {number}"})

    seen, cursor = [], ""
    while cursor is not None:
        page = tenant.admin.get(f"/audit-log?limit=2&cursor={cursor}").json
        seen += [line["details"]["name"]["to"] for line in page["events"]]
        cursor = page["next_cursor"]

    assert seen == [f"{tenant.project.name} {number}" for number in range(4, -1, -1)]


def test_a_project_has_all_its_answers_assessed_once_an_admin_says_so(tenant):
    assert tenant.read.get("/project").json["assesses_all"] is False
    body = {"assesses_all": True}
    assert tenant.read.put("/project/assesses-all", body).status_code == 403

    response = tenant.admin.put("/project/assesses-all", body)

    assert response.json["assesses_all"] is True
    assert tenant.read.get("/project").json["assesses_all"] is True
    [line] = tenant.admin.get("/audit-log").json["events"]
    assert line["action"] == "project.changed"
    assert line["details"] == {"assesses_all": {"from": False, "to": True}}


@pytest.mark.parametrize(
    "body", [{}, {"assesses_all": "yes"}, {"assesses_all": None}, {"assesses_all": 1}, [True]]
)
def test_whether_all_answers_are_assessed_is_yes_or_no(tenant, body):
    assert tenant.admin.put("/project/assesses-all", body).status_code == 400
