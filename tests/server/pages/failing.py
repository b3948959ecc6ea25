"""Executions that fail, sent and examined, for pages to show."""

from mesedi_server.store.database import Database
from tests.factories import make_close, make_event, make_execution, make_score
from tests.server.examining import examine_all
from tests.server.tenants import Tenant


def run(tenant: Tenant, execution_id: str, *events: dict, status="completed", **facts) -> None:
    """Send an execution with its events, and close it."""
    sent = [{**event, "execution_id": execution_id} for event in events]
    tenant.ingest.post("/executions", make_execution(execution_id, **facts))
    if sent:
        assert tenant.ingest.post("/events", sent).json["rejected"] == 0
    tenant.ingest.patch(f"/executions/{execution_id}", make_close(status))


def fail(tenant: Tenant, database: Database, execution_id="exec-1", *scores: dict, **facts) -> str:
    """Send an execution that fails, examine it, and return the id of its first group."""
    run(tenant, execution_id, *(scores or [make_score(0.2)]), **facts)
    examine_all(database)
    return groups_of(tenant)[0]


def groups_of(tenant: Tenant) -> list[str]:
    """The ids of the project's groups, last seen first."""
    groups = tenant.read.get("/failure-groups?state=all&limit=200").json["failure_groups"]
    return [group["group_id"] for group in groups]


def fail_each_class(tenant: Tenant, database: Database) -> dict[str, str]:
    """Let an execution fail in every way that its own events decide; group ids by class."""
    run(
        tenant,
        "exec-all",
        make_score(0.2),
        make_event(
            event_type="validator_result",
            payload={"name": "schema", "passed": False, "message": "no price"},
        ),
        make_event(
            event_type="human_intervention",
            payload={"request_id": "hitl-1", "response_kind": "timeout", "wait_duration_ms": 65000},
        ),
    )
    tenant.ingest.post("/executions", make_execution("exec-crashed"))
    crash = make_close("crashed", crash_signature="KeyError:agent.py:plan")
    tenant.ingest.patch("/executions/exec-crashed", crash)
    examine_all(database)
    groups = tenant.read.get("/failure-groups?state=all").json["failure_groups"]
    return {group["failure_class"]: group["group_id"] for group in groups}
