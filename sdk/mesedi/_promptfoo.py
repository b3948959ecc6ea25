"""promptfoo's results: the tool's own verdicts, leaves once.

Source: evaluator-outputs.md, section 2.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from mesedi import _client
from mesedi._readings import printable, read_score, read_verdict
from mesedi._rows import Row, RowScore, read_row, report_nothing, send_rows

_Object: TypeAlias = Mapping[str, Any]

# Their thresholds are edits, milliseconds, money or distances; their scores are 0 to 1.
_OTHER_SCALE = {"levenshtein", "latency", "cost", "perplexity", "similar:euclidean"}
_ERROR = 2  # failureReason: the provider or a grader failed, not the answer
_MAX_NAME_BYTES = 256
_NO_ASSERTION: _Object = {}
_TEMPLATE = re.compile(r"{{.*?}}")
# Their verdicts come from a model, which may fail to give one.
_JUDGED = {
    "agent-rubric",
    "answer-relevance",
    "classifier",
    "context-faithfulness",
    "context-recall",
    "context-relevance",
    "conversation-relevance",
    "factuality",
    "g-eval",
    "llm-rubric",
    "model-graded-closedqa",
    "model-graded-factuality",
    "moderation",
    "pi",
    "search-rubric",
}


@_client.emitter
def emit_promptfoo(
    result: object,
    *,
    metric: str | None = None,
    execution_ids: Sequence[str] | None = None,
    answers: bool = False,
    run_id: str | None = None,
) -> int:
    """Send what promptfoo found: each assertion's verdict, and each test's as metric `test`.

    Takes an output file's content, a summary, one row, a list of rows, a grading result. Each
    row goes to its entry of `execution_ids`, else the current execution, else one of its own.
    Rows beyond the first 10,000 are dropped, counted once.

    Args:
        result: what promptfoo wrote.
        metric: the name of a bare grading result, which does not know it.
        execution_ids: the executions of the rows, in their order.
        answers: True sends each row's prompt and output too.
        run_id: your name of this run, such as the file's `evalId`: sending the result twice
            then stores it once.

    Returns:
        The number of scores.
    """
    rows = promptfoo_rows(result, metric=metric, answers=answers)
    count = send_rows("promptfoo", rows, execution_ids=execution_ids, run_id=run_id)
    return count or report_nothing("promptfoo", result)


def promptfoo_rows(
    result: object, *, metric: str | None = None, answers: bool = False
) -> Iterator[Row]:
    """Read the rows of a result."""
    seen: Counter[object] = Counter()
    for row in _result_rows(result):
        yield read_row(_keyed, row, seen, metric, answers)


def _keyed(row: _Object, seen: Counter[object], metric: str | None, answers: bool) -> Row:  # noqa: FBT001
    place = (row.get("testIdx"), row.get("promptIdx"))
    # Repeated tests share their place; rows that have none are told apart by what they say.
    key = f"{place}#{seen[place]}" if row.get("testIdx") is not None else repr(row)
    seen[place] += 1
    return _row(row, key, answers=answers) if "success" in row else _bare(row, key, metric)


def _result_rows(result: object) -> Iterator[_Object]:
    if isinstance(result, Mapping):
        inner = result.get("results", result.get("table", result.get("body")))
        if inner is not None:
            yield from _result_rows(inner)
        elif "outputs" in result:  # a row of a table, with a cell a prompt
            yield from _result_rows(result["outputs"])
        elif "pass" in result and "text" in result:  # such a cell
            yield {"response": {"output": result["text"]}, **result, "success": result["pass"]}
        elif "success" in result or "pass" in result or "pass_" in result:
            yield result
    elif isinstance(result, Iterable) and not isinstance(result, str | bytes):
        for item in result:
            yield from _result_rows(item)


def _row(row: _Object, key: str, *, answers: bool) -> Row:
    grading = row.get("gradingResult") or {}
    declared = _flat((row.get("testCase") or {}).get("assert") or [])
    scores = [*_grading_scores(grading, declared, row.get("namedScores")), _test(row, grading)]
    output = (row.get("response") or {}).get("output")
    if not answers or not isinstance(output, str):
        return Row(scores, key=key)
    return Row(scores, (row.get("prompt") or {}).get("raw"), output, key=key)


def _bare(grading: _Object, key: str, metric: str | None) -> Row:
    """Read a grading result alone: its own verdict, and those that it is made of."""
    assertion = _assertion(grading) or _NO_ASSERTION
    whole = "test" if _components(grading) else "assertion"
    name = _name(metric) or _metric(assertion, set()) or _name(assertion.get("type")) or whole
    parts = [part for part in _grading_scores(grading, []) if part.metric != name]
    return Row([*parts, _leaf(grading, assertion, name)], key=key)


def _grading_scores(
    grading: _Object, declared: list[_Object], told: _Object | None = None
) -> list[RowScore]:
    """Read the leaves, and the named scores in `told` (the row's) that no leaf carries."""
    named = _named(grading) if told is None else told
    components = _with_assertions(_each_once(_components(grading)), declared)
    leaves = _named_leaves(components, set(named))
    carried = {leaf.metric for leaf in leaves}
    # A row adds up what its components say of one name, up to 0.114 without telling how many.
    nested = [pair for component, _, _ in components for pair in _named(component).items()]
    if not nested and (not components or grading.get("namedScoreWeights") is not None):
        nested = list(named.items())
    return leaves + [
        RowScore(_name(name), read_score(score).score)
        for name, score in nested
        if name in named and _name(name) not in carried
    ]


def _named(holder: _Object) -> _Object:
    return _either(holder, "namedScores", "named_scores") or {}


def _components(grading: _Object) -> list[_Object]:
    return _either(grading, "componentResults", "component_results") or []


def _each_once(components: list[_Object]) -> Iterator[tuple[_Object, bool]]:
    """Walk the components and say of each whether others stand for it in detail.

    promptfoo repeats the parts of a set flat behind it; parts that it does not are added.
    """
    for place, component in enumerate(components):
        parts = _components(component)
        yield component, bool(parts)
        following = components[place + 1 : place + 1 + len(parts)]
        if [_gist(part) for part in following] != [_gist(part) for part in parts]:
            yield from _each_once(parts)


def _gist(component: _Object) -> tuple[object, object, object]:
    return _either(component, "pass", "pass_"), component.get("score"), component.get("reason")


def _with_assertions(
    components: Iterable[tuple[_Object, bool]], declared: list[_Object]
) -> list[tuple[_Object, _Object, bool]]:
    """Give each component its assertion; those that lost it (up to 0.114) get it from the test."""
    found = [(component, _assertion(component), parted) for component, parted in components]
    spent = Counter(_kind(assertion) for _, assertion, _ in found if assertion)
    missing = []
    for assertion in declared:
        if spent[_kind(assertion)] > 0:
            spent[_kind(assertion)] -= 1
        else:
            missing.append(assertion)
    lost = sum(not assertion for _, assertion, _ in found)
    restored = iter(missing if lost == len(missing) else [])
    return [(c, a or next(restored, _NO_ASSERTION), parted) for c, a, parted in found]


def _assertion(component: _Object) -> _Object | None:
    metadata = component.get("metadata") or {}
    return component.get("assertion") or metadata.get("assertionSet")


def _kind(assertion: _Object) -> tuple[object, object]:
    return assertion.get("type"), assertion.get("metric") or None


def _flat(assertions: Iterable[_Object]) -> list[_Object]:
    return [
        each
        for assertion in assertions
        for each in (assertion, *_flat(assertion.get("assert") or []))
    ]


def _named_leaves(
    components: list[tuple[_Object, _Object, bool]], names: set[str]
) -> list[RowScore]:
    own = {assertion.get("metric") for _, assertion, _ in components}
    rendered = names - own
    used: Counter[str] = Counter()
    parents: set[str] = set()
    leaves = []
    for component, assertion, parted in components:
        metric = _metric(assertion, rendered)
        if parted and metric is None:
            continue  # its parts say it all
        name = metric or _name(assertion.get("type")) or "assertion"
        if metric is None or name in parents:
            # Without a name of its own the place tells it apart, from the second on; so does
            # it for the parts of an assertion that go by their parent's name.
            used[name] += 1
            position = used[name] + (name in parents)
            name = name if position == 1 else f"{name}#{position}"
        elif parted:
            parents.add(name)
        leaves.append(_leaf(component, assertion, name))
    return leaves


def _metric(assertion: _Object, rendered: set[str]) -> str | None:
    metric = assertion.get("metric")
    if isinstance(metric, str) and "{{" in metric:
        fits = ".*".join(re.escape(part) for part in _TEMPLATE.split(metric))
        fitting = [name for name in rendered if re.fullmatch(fits, name, re.DOTALL)]
        metric = fitting[0] if len(fitting) == 1 else metric
    return _name(metric) or None


def _judge_failed(component: _Object, kind: str) -> bool:
    """Tell a judge that gave no verdict from a verdict; up to 0.114 only what is missing tells."""
    if (component.get("metadata") or {}).get("graderError"):
        return True
    nothing = component.get("score") == 0 and not read_verdict(_either(component, "pass", "pass_"))
    return nothing and not _assertion(component) and kind.removeprefix("not-") in _JUDGED


def _name(name: object) -> str:
    text = name.strip() if isinstance(name, str) else ""
    return text.encode("utf-8", "replace")[:_MAX_NAME_BYTES].decode("utf-8", "ignore")


def _leaf(component: _Object, assertion: _Object, name: str) -> RowScore:
    kind = str(assertion.get("type") or "")
    reason = _clean(component.get("reason"))
    if _judge_failed(component, kind):
        return RowScore(name, None, reason=reason, status="error")
    limit = read_score(assertion.get("threshold")).score
    scaled = not kind.startswith("not-") and kind not in _OTHER_SCALE
    score = read_score(component.get("score")).score
    metadata = {"assertion": kind} if kind and kind != name.partition("#")[0] else {}
    return RowScore(
        name,
        score,
        read_verdict(_either(component, "pass", "pass_")),
        limit if scaled else None,
        reason=reason,
        status=None if score is not None else "not_scored",
        metadata={**metadata, **({} if scaled or limit is None else {"threshold": limit})} or None,
    )


def _test(row: _Object, grading: _Object) -> RowScore:
    """Read the row's own verdict, which is independent of its assertions'."""
    reason = _clean(grading.get("reason") or row.get("error"))
    if _is_error(row):
        return RowScore("test", None, reason=_clean(row.get("error")) or reason, status="error")
    if (failed := _unjudged(row, grading)) is not None:
        return RowScore("test", None, reason=failed, status="error")
    if not _components(grading):
        # Without assertions promptfoo says "pass, 1": nothing was measured.
        return RowScore("test", None, reason=reason, status="not_scored")
    threshold = read_score((row.get("testCase") or {}).get("threshold")).score
    score = read_score(row.get("score")).score
    status = None if score is not None else "not_scored"
    verdict = read_verdict(row.get("success"))
    return RowScore("test", score, verdict, threshold, reason=reason, status=status)


def _unjudged(row: _Object, grading: _Object) -> str | None:
    """Say why, if a row failed only since its graders did: that tells nothing of the answer."""
    if read_verdict(row.get("success")) is not False:
        return None
    leaves = [component for component, parted in _each_once(_components(grading)) if not parted]
    failed = [leaf for leaf in leaves if read_verdict(_either(leaf, "pass", "pass_")) is not True]
    judged = [leaf for leaf in failed if not _judge_failed(leaf, _kind_of(leaf))]
    if not failed or judged:
        return None
    return _clean(failed[0].get("reason")) or _clean(grading.get("reason")) or "a grader failed"


def _kind_of(component: _Object) -> str:
    return str((_assertion(component) or {}).get("type") or "")


def _is_error(row: _Object) -> bool:
    cause = row.get("failureReason")
    if cause is None:
        return not row.get("gradingResult") and bool(row.get("error"))
    return bool(cause == _ERROR or (cause == 0 and not read_verdict(row.get("success"))))


def _clean(text: object) -> str | None:
    return printable(text) if isinstance(text, str) and text else None


def _either(holder: _Object, name: str, other: str) -> Any:
    return holder.get(name, holder.get(other))
