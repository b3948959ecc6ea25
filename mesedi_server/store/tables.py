"""The tables. `migrations/` makes them; a test holds the two together.

Text columns have no lengths: bounds are the edge's business. `*_pk` names an internal key, `*_id` what clients see.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Date,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _time(name: str, *, required: bool = False, now: bool = False) -> Column[Any]:
    default = func.now() if now else None
    return Column(name, DateTime(timezone=True), nullable=not required, server_default=default)


def _needed(name: str, type_: TypeEngine[Any], default: str | None = None) -> Column[Any]:
    server_default = None if default is None else text(default)
    return Column(name, type_, nullable=False, server_default=server_default)


def _project() -> Column[int]:
    return Column(
        "project_pk", Integer, ForeignKey("projects.pk", ondelete="CASCADE"), nullable=False
    )


def _owner(name: str, target: str) -> Column[int]:
    return Column(name, BigInteger, ForeignKey(target, ondelete="CASCADE"), nullable=False)


projects = Table(
    "projects",
    metadata,
    Column("pk", Integer, Identity(always=True), primary_key=True),
    _needed("project_id", Text()),
    _needed("name", Text()),
    _time("created_at", required=True, now=True),
    # Names of the IANA time zone database: what people want, and what days are counted by. On the way to another one,
    # executions up to `moved_to` are counted in `next_zone`.
    _needed("time_zone", Text(), "'UTC'"),
    _needed("counted_zone", Text(), "'UTC'"),
    Column("next_zone", Text),
    _needed("moved_to", BigInteger(), "0"),
    # Address of an execution's trace elsewhere, with {execution_id} in it.
    Column("trace_url_template", Text),
    # NULL: executions are kept for ever.
    Column("retention_days", Integer),
    # Assess every answer, not the failing ones alone.
    _needed("assesses_all", Boolean(), "false"),
    UniqueConstraint("project_id"),
    UniqueConstraint("name"),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("pk", Integer, Identity(always=True), primary_key=True),
    _project(),
    _needed("key_id", Text()),
    _needed("name", Text(), "''"),
    _needed("prefix", Text()),
    _needed("key_hash", LargeBinary()),
    _needed("scopes", ARRAY(Text())),
    _time("created_at", required=True, now=True),
    _time("expires_at"),
    _time("last_used_at"),
    _time("revoked_at"),
    Column("created_by", Text),
    UniqueConstraint("key_id"),
    UniqueConstraint("key_hash"),
)

users = Table(
    "users",
    metadata,
    Column("pk", Integer, Identity(always=True), primary_key=True),
    _needed("name", Text()),
    _time("created_at", required=True, now=True),
    # In argon2's own notation, with its parameters; NULL: signs in by links alone.
    Column("password_hash", Text),
    UniqueConstraint("name"),
)

memberships = Table(
    "memberships",
    metadata,
    Column("user_pk", Integer, ForeignKey("users.pk", ondelete="CASCADE"), nullable=False),
    _project(),
    _needed("role", Text()),
    PrimaryKeyConstraint("user_pk", "project_pk"),
)

sign_in_links = Table(
    "sign_in_links",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("user_pk", Integer, ForeignKey("users.pk", ondelete="CASCADE"), nullable=False),
    _time("expires_at", required=True),
    _time("used_at"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("token_hash", LargeBinary, primary_key=True),
    Column("user_pk", Integer, ForeignKey("users.pk", ondelete="CASCADE"), nullable=False),
    _needed("csrf_token", Text()),
    _time("created_at", required=True, now=True),
    _time("expires_at", required=True),
    Index("ix_sessions_user_pk", "user_pk"),
    Index("ix_sessions_expires_at", "expires_at"),
)

# Passwords that were tried and not found right (yet); rows are short-lived.
sign_in_attempts = Table(
    "sign_in_attempts",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _needed("name_hash", LargeBinary()),
    _needed("address", Text()),
    _time("at", required=True, now=True),
    Index("ix_sign_in_attempts_name_hash", "name_hash", "at"),
    Index("ix_sign_in_attempts_address", "address", "at"),
    Index("ix_sign_in_attempts_at", "at"),
)

executions = Table(
    "executions",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _needed("execution_id", Text()),
    _needed("status", Text(), "'started'"),
    _time("received_at", required=True, now=True),
    _time("started_at", required=True, now=True),
    _time("ended_at"),
    Column("duration_ms", BigInteger),
    # Which of the client's own requests have come: POST never overwrites what a PATCH set.
    _time("posted_at"),
    _time("patched_at"),
    # Set by the first PATCH with a terminal status, whatever `status` said before.
    _time("closed_at"),
    _time("paused_at"),
    _needed("total_paused_ms", BigInteger(), "0"),
    _needed("pause_count", Integer(), "0"),
    Column("total_tokens_in", BigInteger),
    Column("total_tokens_out", BigInteger),
    Column("estimated_cost_usd", Double),
    Column("sdk_language", Text),
    Column("sdk_version", Text),
    Column("tenant_id", Text),
    Column("parent_execution_id", Text),
    Column("release", Text),
    Column("environment", Text),
    Column("input_summary", Text),
    Column("output_summary", Text),
    Column("crash_signature", Text),
    _time("last_event_at"),
    _time("detect_due_at"),
    _time("examined_at"),
    # What the cap of findings cut at the last examination.
    _needed("overflow_count", Integer(), "0"),
    Column("overflow_signatures", JSONB),
    UniqueConstraint("project_pk", "execution_id"),
    Index(
        "ix_executions_project_pk_started_at",
        "project_pk",
        text("started_at DESC"),
        text("pk DESC"),
    ),
    Index(
        "ix_executions_detect_due_at",
        "detect_due_at",
        postgresql_where=text("detect_due_at IS NOT NULL"),
    ),
    # Most updates touch only last_event_at: room on the page keeps them off the indexes.
    postgresql_with={"fillfactor": 80},
)

events = Table(
    "events",
    metadata,
    # No foreign keys here: the one statement that writes events takes both keys from rows that it has just locked,
    # and a check a row costs a fifth of the ingest rate.
    Column("project_pk", Integer, nullable=False),
    _needed("event_id", Text()),
    Column("execution_pk", BigInteger, nullable=False),
    _needed("event_type", Text()),
    _needed("sequence", BigInteger(), "0"),
    _time("timestamp", required=True, now=True),
    _time("received_at", required=True, now=True),
    Column("duration_ms", BigInteger),
    Column("payload", JSONB),
    # What detectors read of an eval_score.
    Column("evaluator_id", Text),
    Column("metric_type", Text),
    Column("score", Double),
    Column("passed", Boolean),
    Column("higher_is_better", Boolean),
    Column("scale_min", Double),
    Column("scale_max", Double),
    PrimaryKeyConstraint("project_pk", "event_id"),
    Index("ix_events_execution_pk", "execution_pk"),
    Index("ix_events_answers", "execution_pk", postgresql_where=text("event_type = 'answer'")),
    Index(
        "ix_events_human_interventions",
        "project_pk",
        "timestamp",
        postgresql_where=text("event_type = 'human_intervention'"),
    ),
)

score_rollups = Table(
    "score_rollups",
    metadata,
    _owner("execution_pk", "executions.pk"),
    Column("project_pk", Integer, nullable=False),
    _needed("evaluator_id", Text()),
    _needed("metric_type", Text()),
    _needed("events", Integer()),
    _needed("measured", Integer()),
    Column("mean", Double),
    # The mean as a fraction ("7/10"), because a float cannot decide a mean that equals its floor.
    Column("mean_exact", Text),
    Column("lowest", Double),
    Column("highest", Double),
    _needed("unmeasured", Integer()),
    _needed("failed", Integer()),
    Column("failed_rank", Integer),
    _needed("higher_is_better", Boolean()),
    _needed("raw_out_of_range", Boolean()),
    PrimaryKeyConstraint("execution_pk", "evaluator_id", "metric_type"),
    # With what a distribution and an agreement are made of, for the rows of a pair lie apart.
    Index(
        "ix_score_rollups_means",
        "project_pk",
        "evaluator_id",
        "metric_type",
        "execution_pk",
        postgresql_include=["mean", "measured", "failed", "higher_is_better", "raw_out_of_range"],
    ),
)

failure_groups = Table(
    "failure_groups",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _needed("group_id", Text()),
    _needed("failure_class", Text()),
    _needed("signature", Text()),
    _needed("evaluator_id", Text(), "''"),
    _needed("metric_type", Text(), "''"),
    _needed("severity", Text()),
    _needed("state", Text(), "'open'"),
    _time("first_seen_at", required=True),
    _time("last_seen_at", required=True),
    _needed("occurrence_count", BigInteger(), "0"),
    _time("regressed_at"),
    Column("regressed_release", Text),
    _time("state_changed_at"),
    Column("state_changed_by", Text),
    Column("state_reason", Text),
    _time("ignored_until"),
    Column("ignored_until_count", BigInteger),
    _time("over_strict_at"),
    Column("over_strict_by", Text),
    Column("over_strict_note", Text),
    UniqueConstraint("project_pk", "group_id"),
    Index(
        "ix_failure_groups_ignored_until",
        "ignored_until",
        postgresql_where=text("state = 'ignored'"),
    ),
    Index("ix_failure_groups_last_seen", "project_pk", text("last_seen_at DESC"), text("pk DESC")),
)

occurrences = Table(
    "occurrences",
    metadata,
    _owner("group_pk", "failure_groups.pk"),
    _owner("execution_pk", "executions.pk"),
    Column("project_pk", Integer, nullable=False),
    _time("occurred_at", required=True),
    _time("created_at", required=True, now=True),
    _needed("rule", Text()),
    _needed("severity", Text()),
    _needed("evidence", JSONB()),
    _needed("threshold_version", Integer(), "0"),
    Column("release", Text),
    Column("environment", Text),
    PrimaryKeyConstraint("group_pk", "execution_pk"),
    Index("ix_occurrences_execution_pk", "execution_pk"),
    # Only validators' groups have members of different severities.
    Index(
        "ix_occurrences_severity",
        "group_pk",
        "severity",
        postgresql_where=text("rule = 'failed_check'"),
    ),
    Index("ix_occurrences_recent", "group_pk", text("occurred_at DESC"), text("execution_pk DESC")),
)

group_history = Table(
    "group_history",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _owner("group_pk", "failure_groups.pk"),
    _time("at", required=True, now=True),
    _needed("kind", Text()),
    Column("actor", Text),
    Column("note", Text),
    Column("release", Text),
    Index("ix_group_history_group_pk", "group_pk", "pk"),
    # One first-seen mark, however many workers see a new group at once.
    Index(
        "uq_group_history_first_seen",
        "group_pk",
        unique=True,
        postgresql_where=text("kind = 'first_seen'"),
    ),
)

# How many occurrences a group has had by day of the project's zone; '' where no release or environment is known.
# Triggers keep it, so that it equals a recount whoever writes: see migration 0003.
group_days = Table(
    "group_days",
    metadata,
    Column("group_pk", BigInteger, nullable=False),
    Column("day", Date, nullable=False),
    _needed("release", Text()),
    _needed("environment", Text()),
    _project(),
    _needed("occurrences", Integer()),
    PrimaryKeyConstraint("group_pk", "day", "release", "environment"),
    # A list reads thousands of these rows for its order: from the index alone.
    Index(
        "ix_group_days_recent",
        "project_pk",
        "day",
        postgresql_include=["group_pk", "occurrences", "release", "environment"],
    ),
)

# The same by week, which begins on a Monday; and a total of each week over its releases and environments.
group_weeks = Table(
    "group_weeks",
    metadata,
    Column("group_pk", BigInteger, nullable=False),
    Column("week", Date, nullable=False),
    Column("is_total", Boolean, nullable=False),
    _needed("release", Text()),
    _needed("environment", Text()),
    _project(),
    _needed("occurrences", Integer()),
    PrimaryKeyConstraint("group_pk", "week", "is_total", "release", "environment"),
    Index(
        "ix_group_weeks_total",
        "project_pk",
        "week",
        postgresql_include=["group_pk", "occurrences"],
        postgresql_where=text("is_total"),
    ),
    Index(
        "ix_group_weeks_recent",
        "project_pk",
        "week",
        postgresql_include=["group_pk", "occurrences", "release", "environment"],
        postgresql_where=text("NOT is_total"),
    ),
)

# The same by four weeks, which begin on a Monday; beside the rows of each release in each environment there are totals
# over the releases, over the environments, and over both.
group_periods = Table(
    "group_periods",
    metadata,
    Column("group_pk", BigInteger, nullable=False),
    Column("period", Date, nullable=False),
    Column("any_release", Boolean, nullable=False),
    Column("any_environment", Boolean, nullable=False),
    _needed("release", Text()),
    _needed("environment", Text()),
    _project(),
    _needed("occurrences", Integer()),
    PrimaryKeyConstraint(
        "group_pk", "period", "any_release", "any_environment", "release", "environment"
    ),
    Index(
        "ix_group_periods_recent",
        "project_pk",
        "any_release",
        "any_environment",
        "release",
        "environment",
        "period",
        postgresql_include=["group_pk", "occurrences"],
    ),
)

# How many executions have carried a pair, by day in which they were received; kept as `group_days`.
pair_days = Table(
    "pair_days",
    metadata,
    _project(),
    _needed("evaluator_id", Text()),
    _needed("metric_type", Text()),
    Column("day", Date, nullable=False),
    _needed("interactions", Integer()),
    PrimaryKeyConstraint("project_pk", "evaluator_id", "metric_type", "day"),
)

# What people have done to many groups at once, and what these were before: the way back.
group_changes = Table(
    "group_changes",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _needed("change_id", Text()),
    _time("at", required=True, now=True),
    _needed("actor", Text()),
    _needed("state", Text()),
    _needed("before", JSONB()),
    _time("undone_at"),
    UniqueConstraint("change_id"),
)

# Spikes that go on: a row from the look that found one until the look that finds it over.
spike_episodes = Table(
    "spike_episodes",
    metadata,
    _project(),
    _needed("rule", Text()),
    _time("opened_at", required=True, now=True),
    PrimaryKeyConstraint("project_pk", "rule"),
)

thresholds = Table(
    "thresholds",
    metadata,
    _project(),
    _needed("detector", Text()),
    # Counts every change of the detector's knobs in the project: 1, 2, 3 …; 0 is "defaults only".
    _needed("version", Integer()),
    _needed("threshold_key", Text()),
    # SQL NULL: back to the default.
    Column("value", JSONB(none_as_null=True)),
    _time("changed_at", required=True, now=True),
    _needed("changed_by", Text()),
    Column("reason", Text),
    PrimaryKeyConstraint("project_pk", "detector", "version"),
    Index("ix_thresholds_key", "project_pk", "detector", "threshold_key", text("version DESC")),
)

# What people and admin keys have done to a project; never changed, never deleted while the project lives.
audit_log = Table(
    "audit_log",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _time("at", required=True, now=True),
    _needed("actor", Text()),
    _needed("action", Text()),
    _needed("subject", Text()),
    _needed("details", JSONB(), "'{}'"),
    Index("ix_audit_log_recent", "project_pk", text("at DESC"), text("pk DESC")),
)

halts = Table(
    "halts",
    metadata,
    Column(
        "execution_pk",
        BigInteger,
        ForeignKey("executions.pk", ondelete="CASCADE"),
        primary_key=True,
    ),
    _needed("reason", Text()),
    _needed("requested_by", Text()),
    _time("requested_at", required=True, now=True),
    _needed("deliveries", Integer(), "0"),
)

# What evaluators said of answers. One row an answer and evaluator: a changed answer or a new revision replaces it.
assessments = Table(
    "assessments",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _owner("execution_pk", "executions.pk"),
    _needed("answer_id", Text()),
    # SHA-256 over question, answer and context as they were assessed.
    _needed("answer_digest", LargeBinary()),
    _needed("evaluator", Text()),
    _needed("revision", Text()),
    _needed("outcome", Text()),
    Column("reason", Text),
    Column("content", JSONB(none_as_null=True)),
    _needed("quantities", Integer(), "0"),
    _needed("unmatched", Integer(), "0"),
    _needed("ambiguous", Integer(), "0"),
    _needed("citations", Integer(), "0"),
    _needed("unresolved", Integer(), "0"),
    Column("passages", Integer),
    _time("assessed_at", required=True, now=True),
    # With all that a group's sums are made of: the rows themselves are wide and lie apart.
    UniqueConstraint(
        "execution_pk",
        "answer_id",
        "evaluator",
        postgresql_include=[
            "outcome",
            "quantities",
            "unmatched",
            "ambiguous",
            "citations",
            "unresolved",
            "passages",
        ],
    ),
    Index("ix_assessments_recent", "project_pk", text("assessed_at DESC")),
)

# Executions whose answers are to be looked at. Rows are only ever added, so that whoever has something to look at
# waits for nobody; they go with the transaction that has looked.
assessment_work = Table(
    "assessment_work",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _owner("execution_pk", "executions.pk"),
    _time("due_at", required=True, now=True),
    Index("ix_assessment_work_due_at", "due_at"),
    Index("ix_assessment_work_execution_pk", "execution_pk", "pk"),
)

# How a project has its answers judged. No row: nothing is ever sent to a judge.
judge_settings = Table(
    "judge_settings",
    metadata,
    Column("project_pk", Integer, ForeignKey("projects.pk", ondelete="CASCADE"), primary_key=True),
    _needed("is_on", Boolean(), "false"),
    _needed("url", Text()),
    _needed("model", Text()),
    # Encrypted with the server's own key, which is not in the database; its last characters, to tell keys apart.
    Column("key_ciphertext", LargeBinary),
    Column("key_hint", Text),
    _needed("calls_per_day", Integer()),
    _needed("calls_per_month", Integer()),
    _needed("concurrency", Integer(), "1"),
    # failing | sample | all
    _needed("answers", Text(), "'failing'"),
    _needed("sample_percent", Integer(), "0"),
    _needed("min_correctness", Integer(), "7"),
    # In millionths; null: nobody says what a call may cost, or there is no budget in money.
    Column("cost_per_call_micros", BigInteger),
    Column("cost_per_day_micros", BigInteger),
    Column("cost_per_month_micros", BigInteger),
    _time("changed_at", required=True, now=True),
    _needed("changed_by", Text()),
    # How it goes: a judge that cannot be used is left alone for a while.
    _needed("failures", Integer(), "0"),
    _time("failing_since"),
    _time("ask_after"),
    Column("last_error", Text),
    Column("last_error_status", Integer),
    _time("last_error_at"),
    # Answers that found the queue full.
    _needed("not_queued", BigInteger(), "0"),
)

# The ledger: a call is reserved before it is sent, its reply is saved before it is read.
judge_calls = Table(
    "judge_calls",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _needed("call_id", Text()),
    _needed("cache_key", Text()),
    _needed("judge", Text()),
    _needed("request", Text()),
    _needed("status", Text()),
    Column("reserved_cost_micros", BigInteger),
    Column("actual_cost_micros", BigInteger),
    Column("reply", Text),
    Column("exception_type", Text),
    Column("http_status", Integer),
    # The answer that it was reserved for, by the client's ids; others that ask the same share the call.
    Column("execution_id", Text),
    Column("answer_id", Text),
    _time("started_at", required=True, now=True),
    _time("finished_at"),
    Column("settlement", Text),
    UniqueConstraint("project_pk", "cache_key"),
    UniqueConstraint("call_id"),
    # Budgets count the calls of a day and of a month, and what they cost: a hundred thousand, before each call.
    Index(
        "ix_judge_calls_started_at",
        "project_pk",
        "started_at",
        postgresql_include=["reserved_cost_micros", "actual_cost_micros"],
    ),
    Index("ix_judge_calls_running", "started_at", postgresql_where=text("status = 'running'")),
)

# Answers that wait for the judge.
judge_work = Table(
    "judge_work",
    metadata,
    _owner("execution_pk", "executions.pk"),
    _needed("answer_id", Text()),
    _project(),
    _time("due_at", required=True, now=True),
    _needed("tries", Integer(), "0"),
    # The call that was reserved for it; several answers can share one.
    Column("cache_key", Text),
    PrimaryKeyConstraint("execution_pk", "answer_id"),
    Index("ix_judge_work_due_at", "project_pk", "due_at"),
    Index(
        "ix_judge_work_cache_key",
        "project_pk",
        "cache_key",
        postgresql_where=text("cache_key IS NOT NULL"),
    ),
)

# What people say of answers; a correction is a row of its own, the last one counts.
answer_labels = Table(
    "answer_labels",
    metadata,
    Column("pk", BigInteger, Identity(always=True), primary_key=True),
    _project(),
    _owner("execution_pk", "executions.pk"),
    _needed("answer_id", Text()),
    # SHA-256 over the text that was labelled: what is said of an answer is not said of its next version.
    _needed("answer_digest", LargeBinary()),
    _needed("label_id", Text()),
    # correct | wrong | evaluator_wrong
    _needed("label", Text()),
    Column("note", Text),
    _needed("actor", Text()),
    # Who gave a label that a key brought.
    Column("person", Text),
    _time("at", required=True, now=True),
    UniqueConstraint("label_id"),
    Index("ix_answer_labels_execution_pk", "execution_pk", "answer_id", text("pk DESC")),
    # An export walks a project's labels in their order.
    Index("ix_answer_labels_project_pk", "project_pk", "pk"),
)

probes = Table(
    "probes",
    metadata,
    Column("name", Text, primary_key=True),
    _time("written_at", required=True),
)
