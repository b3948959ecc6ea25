"""What goes next, and what its answer does to the lanes."""

import itertools
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple

from mesedi._backoff import Backoff
from mesedi._courier import MOST_AT_ONCE, UNREACHABLE, Answer, Couriers, Request
from mesedi._guard import say_once, unsay
from mesedi._ids import Ids
from mesedi._lanes import Lane, Lanes
from mesedi._pieces import Piece, Report, SavedEvent, SavedReport, is_event, is_report
from mesedi._settings import Settings
from mesedi._spelling import Spelled, Speller
from mesedi._tally import Tally
from mesedi._verdicts import Fate, Verdict, judge

_SETTLED = (Fate.TAKEN, Fate.SPLIT, Fate.REFUSED)
_FOR_ALL = (Fate.PAUSE, Fate.HELD)
_ALONE_FROM = 2  # strikes from which a lane no longer shares a batch with others


class _Parcel(NamedTuple):
    """An event on its way; `spelled.text` None when it does not leave."""

    lane: Lane
    spelled: Spelled


class Delivery:
    """Sends what the lanes hold. Used by the sender's thread alone."""

    def __init__(self, settings: Settings, ids: Ids) -> None:
        self._settings = settings
        self._speller = Speller(settings, ids)
        self._batch_bytes = settings.batch_bytes
        self._reports_in_row = 0
        self.couriers = Couriers(settings)
        self.lanes = Lanes(time.monotonic)
        self.backoff = Backoff(settings.max_backoff_s)
        self.events = Tally()
        self.reports = Tally()
        self.hopeless_in_row = 0
        """Requests in a row that found no server, or one that does not know us."""
        self._released = [0, 0]
        self._saved_settled = 0

    def step(self) -> bool:
        """Send the next request; False when nothing is ready."""
        self.lanes.wake_due()
        if self._reports_in_row < self._settings.batch_size and (sent := self._send_reports()):
            self._reports_in_row += sent
            return True
        self._reports_in_row = 0
        parcels = self._gather()
        if not parcels:
            return self._send_reports() > 0
        self._send_events(parcels)
        return True

    def released(self) -> tuple[int, int]:
        """Tell, once, how many pieces and bytes were settled since the last call."""
        pieces, size = self._released
        self._released = [0, 0]
        return pieces, size

    def saved_settled(self) -> int:
        """Tell, once, how many of an earlier process' pieces were settled since the last call."""
        count, self._saved_settled = self._saved_settled, 0
        return count

    def give_up(self) -> list[Piece]:
        """Answer every piece that is not settled, and forget them."""
        given_up = self.lanes
        # A request that is still out must not count its pieces a second time.
        self.lanes = Lanes(time.monotonic)
        return [piece for lane in list(given_up) for piece in list(lane.pieces)]

    # Starts and ends

    def _send_reports(self) -> int:
        """Send the next report of some executions, at once; answers how many."""
        lanes = self._next_reporting()
        if not lanes:
            return 0
        answers = self.couriers.send_all([self._request(lane) for lane in lanes])
        waiting: list[tuple[Lane, Verdict]] = []
        for lane, answer in zip(lanes, answers, strict=True):
            if answer is None:
                self.lanes.put_back(lane)
                continue
            verdict = self._judged(answer, _report_of(lane).method)
            if verdict.fate not in _SETTLED:
                waiting.append((lane, verdict))
                continue
            self._settle_report(lane, verdict)
        self._wait(waiting)
        return len(lanes)

    def _next_reporting(self) -> list[Lane]:
        """Take out as many lanes as may report at once: one to see whether a sick server is well."""
        most = 1 if self.backoff.failures else MOST_AT_ONCE
        lanes = (self.lanes.next_reporting() for _ in range(most))
        return [lane for lane in lanes if lane is not None]

    def _request(self, lane: Lane) -> Request:
        report = _report_of(lane)
        body = self._speller.report(report).encode("utf-8", "replace")
        return Request(report.method, report.path, body)

    def _settle_report(self, lane: Lane, verdict: Verdict) -> None:
        if verdict.fate is Fate.TAKEN:
            self._settle(lane).sent()
        else:
            self._settle(lane).refuse(verdict.reason)
            say_once(f"report:{verdict.reason}", "A report was refused: %s", verdict.reason)
        lane.strikes = 0
        self.lanes.put_back(lane)

    # Events

    def _gather(self) -> list[_Parcel]:
        """Fill a batch from the lanes that are ready to speak."""
        batch: list[_Parcel] = []
        room = self._batch_bytes
        while len(batch) < self._settings.batch_size and room > 0:
            lane = self.lanes.next_speaking()
            if lane is None:
                break
            alone = lane.strikes >= _ALONE_FROM
            if alone and batch:
                self.lanes.put_back_first(lane)
                break
            for parcel in self._from_lane(lane, self._settings.batch_size - len(batch), room):
                batch.append(parcel)
                room -= len(parcel.spelled.text or "")
            if alone:
                break
        return batch

    def _from_lane(self, lane: Lane, most: int, room: int) -> list[_Parcel]:
        # A lane that fails again and again sends less each time, until what is wrong is alone.
        most = max(1, most >> max(0, lane.strikes - _ALONE_FROM))
        parcels: list[_Parcel] = []
        for piece in itertools.islice(lane.pieces, most):
            if not is_event(piece):
                break
            parcels.append(_Parcel(lane, self._speller.event(piece)))
            room -= len(parcels[-1].spelled.text or "")
            if room <= 0:
                break
        return parcels

    def _send_events(self, batch: list[_Parcel]) -> None:
        lanes = {id(parcel.lane): parcel.lane for parcel in batch}
        parts = [batch]
        while parts:
            part = parts.pop()
            verdict = self._send_part(part)
            if verdict.fate is Fate.SPLIT and len(part) > 1:
                half = len(part) // 2
                parts += (part[half:], part[:half])
            elif verdict.fate in _SETTLED:
                self._settle_part(part, verdict)
            else:
                self._wait([(lane, verdict) for lane in lanes.values()])
                return
        for lane in lanes.values():
            lane.strikes = 0
            self.lanes.put_back(lane)

    def _send_part(self, part: list[_Parcel]) -> Verdict:
        texts = [parcel.spelled.text for parcel in part if parcel.spelled.text is not None]
        if not texts:
            return Verdict(Fate.TAKEN)
        body = f"[{','.join(texts)}]".encode("utf-8", "replace")
        answer = self.couriers.send(Request("POST", "/events", body))
        verdict = self._judged(answer, "POST")
        if verdict.reason == "HTTP 413" and len(texts) > 1:
            self._batch_bytes = max(1, min(self._batch_bytes, len(body) // 2))
        return verdict

    def _settle_part(self, part: list[_Parcel], verdict: Verdict) -> None:
        place = 0
        for parcel in part:
            tally = self._settle(parcel.lane)
            if parcel.spelled.text is None:
                tally.drop(parcel.spelled.reason)
                continue
            self._account(tally, verdict, place)
            place += 1
        uncounted = 0 if verdict.counted is None else max(0, place - verdict.counted)
        unsaid = min(place, verdict.refused_unnamed + uncounted)
        if unsaid:
            self.events.sent(-unsaid)
            self.events.refuse("no reason given", unsaid)

    def _account(self, tally: Tally, verdict: Verdict, place: int) -> None:
        reason = verdict.refused.get(place)
        if verdict.reason == "HTTP 413":
            tally.drop("too large")
        elif verdict.fate is not Fate.TAKEN:
            tally.refuse(verdict.reason)
        elif reason is None:
            tally.sent()
            return
        else:
            tally.refuse(reason)
        say_once("event lost", "The server refuses events; mesedi.stats() counts them by reason")

    # What both share

    def _judged(self, answer: Answer, method: str) -> Verdict:
        verdict = judge(answer, method)
        hopeless = answer is UNREACHABLE or verdict.fate is Fate.HELD
        self.hopeless_in_row = self.hopeless_in_row + 1 if hopeless else 0
        if verdict.fate in _SETTLED:
            self.backoff.succeeded()
            unsay("trouble")
            unsay("held")
        return verdict

    def _settle(self, lane: Lane) -> Tally:
        piece = self.lanes.settle(lane)
        if isinstance(piece, SavedEvent | SavedReport):  # takes no room of the queue
            self._saved_settled += 1
        else:
            self._released[0] += 1
            self._released[1] += piece.size
        return self.events if is_event(piece) else self.reports

    def _wait(self, waiting: Sequence[tuple[Lane, Verdict]]) -> None:
        """Let lanes rest after a failure that may pass; several at once count as one."""
        if not waiting:
            return
        worst = next((v for _, v in waiting if v.fate in _FOR_ALL), waiting[0][1])
        everything = worst.fate in _FOR_ALL
        self.backoff.failed(worst.retry_after_s, everything=everything)
        self._complain(worst)
        for lane, verdict in waiting:
            if everything or self.backoff.outage:
                self.lanes.put_back(lane)
                continue
            lane.strikes += 1
            self.lanes.rest(lane, self.backoff.delay(lane.strikes, verdict.retry_after_s))

    def _complain(self, verdict: Verdict) -> None:
        where = self._settings.address.netloc.rpartition("@")[2]
        if verdict.fate is Fate.HELD:
            text = (
                "%s does not accept this client (%s): check api_key and base_url. Events are kept"
            )
            say_once("held", text, where, verdict.reason, level=logging.ERROR)
        else:
            say_once("trouble", "%s: %s. Events are kept and tried again", where, verdict.reason)


def _report_of(lane: Lane) -> Report:
    report = lane.pieces[0]
    if not is_report(report):
        raise TypeError(type(report))
    return report
