"""Send what your evaluators say of your pipeline's outputs to a Mesedi server.

    import mesedi

    mesedi.configure(api_key="mesedi_sk_…", base_url="http://127.0.0.1:8080")

    with mesedi.execution():
        mesedi.record_answer(question, answer, passages)
        mesedi.emit_eval_score("my-judge", "faithfulness", 0.42, passed=False, reason="…")

Only `configure` may raise (and `MesediHalt`, in an execution that you gave a budget). Nothing
else raises, blocks or uses the network on your thread: a background thread sends, and `stats()`
tells what became of everything.
"""

from mesedi._budgets import Budget
from mesedi._client import Client, configure, flush, stats
from mesedi._events import (
    checkpoint,
    emit_event,
    record_answer,
    validator_result,
)
from mesedi._executions import Execution, carry, current_execution, execution
from mesedi._hhem import emit_hhem
from mesedi._humans import (
    HumanInterventionHandle,
    pause_for_human,
    request_human_intervention,
    resume_for_agent,
)
from mesedi._promptfoo import emit_promptfoo
from mesedi._ragas import emit_ragas
from mesedi._scores import emit_eval_score
from mesedi._tally import Counts, Stats
from mesedi._version import __version__
from mesedi._wrapping import wrap
from mesedi.errors import ConfigurationError, MesediError, MesediHalt

__all__ = [
    "Budget",
    "Client",
    "ConfigurationError",
    "Counts",
    "Execution",
    "HumanInterventionHandle",
    "MesediError",
    "MesediHalt",
    "Stats",
    "__version__",
    "carry",
    "checkpoint",
    "configure",
    "current_execution",
    "emit_eval_score",
    "emit_event",
    "emit_hhem",
    "emit_promptfoo",
    "emit_ragas",
    "execution",
    "flush",
    "pause_for_human",
    "record_answer",
    "request_human_intervention",
    "resume_for_agent",
    "stats",
    "validator_result",
    "wrap",
]
