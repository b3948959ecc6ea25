"""What an evaluator and metric said of answers, beside what grounding, a judge and people said of the same ones."""

from collections import defaultdict
from dataclasses import dataclass

from mesedi_server.store.assessments import MAX_ID_CHARS
from mesedi_server.store.database import Connection
from mesedi_server.store.labels import CURRENT_DIGEST, SAID_BY_A_PERSON
from mesedi_server.store.trends import Pair

COMPARED_EXECUTIONS = 1_000
"""Executions that carry the pair, the latest ones, whose answers are compared."""
SEVERAL_EXECUTIONS = 20
"""Of those with several answers, the latest ones: their scores are read one by one."""

# A pair's verdict in an execution is its verdict on the only answer (wire.md 2). Of several answers each has its own,
# by the scores that name it. A person's `evaluator_wrong` makes a failing answer right, and a passing one wrong;
# what was said of an answer before it changed is not said of what it is. What a key says in nobody's name is left out.
# Executions are looked up by an array: neighbours in the index are read together.
_LATEST = "ANY (ARRAY(SELECT execution_pk FROM latest))"
_COMPARED = f"""
WITH latest AS MATERIALIZED (
    SELECT execution_pk, failed > 0 OR higher_is_better AND mean < %(floor)s AS fails FROM score_rollups
    WHERE project_pk = %(project)s AND evaluator_id = %(evaluator)s AND metric_type = %(metric)s
        AND (failed > 0 OR measured > 0)
    ORDER BY execution_pk DESC LIMIT {COMPARED_EXECUTIONS}
), said AS MATERIALIZED (
    SELECT execution_pk, answer_id, evaluator AS judge, CASE outcome WHEN 'met' THEN 'right' ELSE 'wrong' END AS word
    FROM assessments WHERE execution_pk = {_LATEST} AND outcome IN ('met', 'violated')
    UNION ALL
    SELECT p.execution_pk, left(p.answer_id, {MAX_ID_CHARS}), 'people',
        CASE p.label WHEN 'correct' THEN 'right' ELSE p.label END
    FROM (SELECT DISTINCT ON (execution_pk, answer_id) execution_pk, answer_id, answer_digest, label
        FROM answer_labels g WHERE execution_pk = {_LATEST} AND {SAID_BY_A_PERSON.format(row="g")}
        ORDER BY execution_pk, answer_id, pk DESC) p
    JOIN LATERAL ({CURRENT_DIGEST.format(execution="p.execution_pk", answer="p.answer_id")}) AS current
        ON current.digest = p.answer_digest
), several AS MATERIALIZED (
    SELECT execution_pk FROM (SELECT DISTINCT execution_pk FROM said) s
    WHERE (SELECT count(*) FROM (SELECT FROM events e WHERE e.execution_pk = s.execution_pk
            AND e.event_type = 'answer' LIMIT 2) sent) > 1
        AND (SELECT count(DISTINCT answer_id) FROM (
            SELECT answer_id FROM assessments a WHERE a.execution_pk = s.execution_pk
            UNION ALL SELECT left(answer_id, {MAX_ID_CHARS}) FROM answer_labels p
            WHERE p.execution_pk = s.execution_pk) known) > 1
), scored AS (
    SELECT e.execution_pk, left(e.payload ->> 'answer_id', {MAX_ID_CHARS}) AS answer_id, e.passed, e.higher_is_better,
        CASE WHEN e.score BETWEEN -1e300 AND 1e300 THEN
            CASE WHEN e.scale_max > e.scale_min THEN (e.score - e.scale_min) / (e.scale_max - e.scale_min)
                ELSE e.score END END AS score
    FROM (SELECT execution_pk FROM several ORDER BY execution_pk DESC LIMIT {SEVERAL_EXECUTIONS}) s
    JOIN events e ON e.execution_pk = s.execution_pk AND e.event_type = 'eval_score'
        AND e.evaluator_id = %(evaluator)s AND e.metric_type = %(metric)s AND e.payload ->> 'answer_id' IS NOT NULL
), verdicts AS (
    SELECT execution_pk, answer_id, bool_or(passed IS FALSE)
            OR coalesce(avg(score) FILTER (WHERE higher_is_better IS NOT FALSE) < %(floor)s, false) AS fails
    FROM scored GROUP BY execution_pk, answer_id
    HAVING bool_or(passed IS FALSE) OR count(score) > 0
    UNION ALL
    SELECT execution_pk, NULL, fails FROM latest WHERE execution_pk NOT IN (SELECT execution_pk FROM several)
)
SELECT judge, fails, CASE word WHEN 'evaluator_wrong' THEN fails ELSE word = 'right' END AS is_right, count(*)
FROM said s JOIN verdicts v ON v.execution_pk = s.execution_pk
    AND (v.answer_id IS NULL OR v.answer_id = s.answer_id)
GROUP BY 1, 2, 3
"""

_FIELDS = {
    (True, False): "both_fail",
    (False, True): "both_pass",
    (True, True): "only_evaluator_fails",
    (False, False): "only_judge_fails",
}


@dataclass(frozen=True, slots=True)
class Agreement:
    """What an evaluator and a judge said of the same answers."""

    both_fail: int = 0
    both_pass: int = 0
    only_evaluator_fails: int = 0
    """The judge finds these answers right."""
    only_judge_fails: int = 0
    """The evaluator passes these answers."""

    @property
    def answers(self) -> int:
        """Answers that have both verdicts."""
        return self.agreed + self.only_evaluator_fails + self.only_judge_fails

    @property
    def agreed(self) -> int:
        """Answers on which both say the same."""
        return self.both_fail + self.both_pass

    @property
    def failing(self) -> int:
        """Answers that the evaluator fails."""
        return self.both_fail + self.only_evaluator_fails


def of_pair(
    connection: Connection, project_pk: int, pair: Pair, floor: float
) -> dict[str, Agreement]:
    """Count how often a pair's verdicts, by a floor, agree with each judge's: `grounding`, `faithfulness`, `people`."""
    evaluator, metric = pair
    parameters = {
        "project": project_pk,
        "evaluator": evaluator,
        "metric": metric,
        "floor": floor,
    }
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for judge, fails, is_right, number in connection.exec_driver_sql(_COMPARED, parameters):
        found[judge][_FIELDS[fails, is_right]] = number
    return {judge: Agreement(**numbers) for judge, numbers in found.items()}
