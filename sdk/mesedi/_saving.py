"""What is left at the exit, spelled out and written to the spool folder."""

from collections.abc import Iterable, Iterator, Sequence

from mesedi._guard import say_once
from mesedi._pieces import (
    Piece,
    SavedEvent,
    SavedReport,
    is_alone,
    is_event,
    is_report,
)
from mesedi._spelling import Speller
from mesedi._spool import Saved, Spool
from mesedi._tally import Tally


def save(
    pieces: Sequence[Piece], spool: Spool, speller: Speller, events: Tally
) -> tuple[Sequence[Piece], int]:
    """Write `pieces`; answers those that did not get there, and the number of saved events.

    What the hook keeps back is counted in `events` and is neither.
    """
    spelled = list(_spelled(pieces, speller, events))
    try:
        count = spool.save(saved for _, saved in spelled)
    except OSError as error:
        say_once("spool", "The spool folder cannot be written to: %s", error.strerror)
        count = 0
    saved_events = sum(isinstance(saved, SavedEvent) for _, saved in spelled[:count])
    return [piece for piece, _ in spelled[count:]], saved_events


def _spelled(
    pieces: Iterable[Piece], speller: Speller, events: Tally
) -> Iterator[tuple[Piece, Saved]]:
    for piece in pieces:
        for part in speller.with_execution(piece) if is_alone(piece) else (piece,):
            saved = _as_saved(part, speller, events)
            if saved is not None:
                yield part, saved


def _as_saved(piece: Piece, speller: Speller, events: Tally) -> Saved | None:
    if isinstance(piece, SavedEvent | SavedReport):
        return piece
    if is_report(piece):
        return SavedReport(piece.execution_id, piece.method, piece.path, speller.report(piece))
    if is_event(piece):
        spelled = speller.event(piece)
        if spelled.text is not None:
            return SavedEvent(piece.execution_id, spelled.text)
        events.drop(spelled.reason)
    return None
