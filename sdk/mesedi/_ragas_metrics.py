"""Ragas' metrics: their many names, one canonical name each, and which way is better.

Source: evaluator-outputs.md, section 1.3.
"""

import re

_ALIASES = {
    "answer_accuracy": ("nv_accuracy",),
    "answer_relevancy": ("response_relevancy", "answer_relevance", "response_relevance"),
    "answer_similarity": ("semantic_similarity",),
    "context_precision": (
        "context_precision_with_reference",
        "context_precision_without_reference",
        "context_utilization",
        "id_based_context_precision",
        "llm_context_precision_with_reference",
        "llm_context_precision_without_reference",
        "non_llm_context_precision_with_reference",
    ),
    "context_recall": (
        "id_based_context_recall",
        "llm_context_recall",
        "non_llm_context_recall",
    ),
    "context_relevance": ("context_relevancy", "nv_context_relevance"),
    "groundedness": ("nv_response_groundedness", "response_groundedness"),
    "noise_sensitivity.irrelevant": ("noise_sensitivity_irrelevant",),
    "noise_sensitivity.relevant": ("noise_sensitivity_relevant",),
}
_CANONICAL = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}

_OTHERS = {
    "agent_goal_accuracy",
    "answer_correctness",
    "aspect_critic",
    "bleu_score",
    "chrf_score",
    "coherence",
    "conciseness",
    "context_entity_recall",
    "correctness",
    "data_compare_score",
    "domain_specific_rubrics",
    "exact_match",
    "factual_correctness",
    "faithful_rate",
    "faithfulness",
    "faithfulness_with_hhem",
    "harmfulness",
    "instance_rubrics",
    "instance_specific_rubrics",
    "labelled_rubrics_score",
    "llm_sql_equivalence_with_reference",
    "maliciousness",
    "multi_modal_faithfulness",
    "multi_modal_relevance",
    "noise_sensitivity",
    "non_llm_string_similarity",
    "reference_free_rubrics_score",
    "relevance_rate",
    "rouge_score",
    "rubrics_score_with_reference",
    "rubrics_score_without_reference",
    "sql_semantic_equivalence",
    "string_present",
    "summary_score",
    "tool_call_accuracy",
    "tool_call_f1",
    "topic_adherence",
}
_LOWER_IS_BETTER = {
    "bias",
    "hallucination",
    "hallucination_rate",
    "harmfulness",
    "maliciousness",
    "noise_sensitivity",
    "toxicity",
}
_RUBRICS = {
    "domain_specific_rubrics",
    "instance_rubrics",
    "instance_specific_rubrics",
    "labelled_rubrics_score",
    "reference_free_rubrics_score",
    "rubrics_score_with_reference",
    "rubrics_score_without_reference",
}
_MODE = re.compile(r"^(?P<name>.*?)\(mode=(?P<mode>[^)]*)\)$")


def canonical(name: str) -> str:
    """Answer the canonical name: aliases united, a mode behind a dot, no stray blanks.

    >>> canonical("rouge_score(mode=fmeasure)"), canonical("context_ relevancy")
    ('rouge_score.fmeasure', 'context_relevance')
    """
    name = re.sub(r"\s*_\s*", "_", name.strip())
    mode = _MODE.match(name)
    if mode:
        return f"{canonical(mode['name'])}.{mode['mode'].strip()}"
    return _CANONICAL.get(name, name)


def is_known(name: str) -> bool:
    """Tell whether a column of this name holds a Ragas metric."""
    stem = canonical(name).partition(".")[0]
    return stem in _OTHERS or stem in _ALIASES


def higher_is_better(metric: str) -> bool:
    """Tell the direction of a canonical metric; unknown ones count as higher is better."""
    return metric.partition(".")[0] not in _LOWER_IS_BETTER


def scale(metric: str) -> tuple[float, float] | None:
    """Answer the scale of metrics that are not between 0 and 1."""
    return (1.0, 5.0) if metric in _RUBRICS else None
