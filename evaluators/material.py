"""What is at hand to judge one captured answer by; each part is read when it is needed first."""

from functools import cached_property
from typing import Any

from evaluators import evidence, rubric
from evaluators.dataset import text_of
from evaluators.evidence import Bundle, MissingEvidence
from evaluators.prompts import Turn
from evaluators.store import answers
from evaluators.store.database import Connection
from evaluators.store.evaluations import Case


class Material:
    """One case: the answer, its context, the evidence, the conversation that led to it."""

    def __init__(self, connection: Connection, case: Case) -> None:
        self._connection = connection
        self.case = case

    @property
    def is_captured(self) -> bool:
        """Say whether there is an answer at all."""
        return self.case.input.observation_digest is not None

    @cached_property
    def _parts(self) -> tuple[str, dict[str, Any] | None]:
        return answers.answer_parts(self.case.answer, self.case.record)[:2]

    @property
    def answer(self) -> str:
        """The exact text."""
        return self._parts[0]

    @property
    def context(self) -> dict[str, Any] | None:
        """What was retrieved, as it was saved; None when nothing was kept."""
        return self._parts[1]

    @property
    def question(self) -> str | None:
        """The nearest earlier user turn of the session."""
        return None if self.case.question is None else text_of(self.case.question)

    @property
    def question_id(self) -> str:
        """The question's source id."""
        return f"turn:{self.case.input.question_ordinal}"

    @cached_property
    def evidence(self) -> Bundle | MissingEvidence:
        """What a claim can lean on, or why there is nothing readable."""
        return evidence.read(self.context, self.question, self.question_id)

    @cached_property
    def conversation(self) -> list[Turn]:
        """The committed turns of the session, up to and including the answer."""
        place = self.case.input
        said = answers.said(self._connection, place.stream, self.case.session_id, place.ordinal + 1)
        return [Turn(f"turn:{ordinal}", role, text) for ordinal, role, text in said]

    @cached_property
    def quotable(self) -> dict[str, str]:
        """Texts that a rubric's verdict or a registered evaluator can quote, by source id."""
        return rubric.sources(self.answer, self.context, self.conversation)
