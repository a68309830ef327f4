"""Every store passes the suite; and the suite sees what is wrong with one that does not do as it should."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from servers import MariaDb

from brook import testing
from brook.claiming import Setback
from brook.errors import UnknownGroup
from brook.model import Claimed, Position, Rule
from brook.packing import Piece, Run, unpack
from brook.sql import statements as sql
from brook.states import AlertCount, Trace
from brook.stores.base import KEPT_ALERTS, ClaimRequest, Cleaned, ListenerPlace, Store
from brook.stores.mysql import MysqlStore
from brook.stores.offers import find_group
from brook.stores.session import Session
from brook.stores.sql import SqlStore
from brook.stores.sqlite import SqliteStore
from brook.testing.tools import CLIENT, OTHER
from brook.urls import mysql_target


def named(check: testing.Check) -> str:
    return check.__name__


@pytest.mark.parametrize("check", testing.CHECKS, ids=named)
def test_sqlite(check: testing.Check, tmp_path: Path) -> None:
    testing.run_check(check, lambda name: SqliteStore(tmp_path / f"{name}.db"))


@pytest.mark.real
@pytest.mark.parametrize("check", testing.CHECKS, ids=named)
def test_mariadb(check: testing.Check, maria: MariaDb) -> None:
    target = mysql_target(maria.url(maria.new_database()))
    testing.run_check(check, lambda name: MysqlStore(target))


class ForgetsToLock(SqlStore):
    """Offsets from a look that is not part of the transaction."""

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        return [first + 1 for first in super().append(runs, now)]


class StoresRunByRun(SqlStore):
    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        return [super(StoresRunByRun, self).append([run], now)[0] for run in runs]


class OneOffsetForAll(SqlStore):
    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        firsts = super().append(runs, now)
        return [firsts[0]] * len(firsts)


class SwapsBodies(SqlStore):
    def read(self, receipts: Sequence[int]) -> list[list[Piece]]:
        return [
            [self._swapped(piece) if piece.messages > 1 else piece for piece in each] for each in super().read(receipts)
        ]

    def _swapped(self, piece: Piece) -> Piece:
        bodies = b"".join(reversed(unpack(piece.data, piece.messages, piece.sizes)))
        return piece._replace(data=bodies, sizes=piece.sizes and piece.sizes[::-1])


class AlwaysEarliest(SqlStore):
    def subscribe(self, group: str, topics: Collection[int] | None, start: Position, **options: Any) -> None:
        super().subscribe(group, topics, "earliest", **options)


class CreatesGroups(SqlStore):
    def lag(self, group: str) -> int:
        try:
            return super().lag(group)
        except UnknownGroup:
            return 0


class IgnoresLimit(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return super().claim(request._replace(limit=1000))


class OneBatchForAll(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return super().claim(request._replace(limit=request.limit * len(request.threads), threads=request.threads[:1]))


class AcksByItself(SqlStore):
    """The ack stays if the claim fails."""

    def ack_and_claim(self, receipts: Sequence[int], request: ClaimRequest) -> tuple[list[int], list[Claimed]]:
        held = self.ack(receipts, request.now)
        return held, super().ack_and_claim([], request)[1]


class StarvesTopics(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        self._turns.clear()
        return super().claim(request)


class ReadsAllAlong(SqlStore):
    """Everybody gets what anybody has claimed last."""

    last = 0

    def read(self, receipts: Sequence[int]) -> list[list[Piece]]:
        ReadsAllAlong.last, receipt = receipts[-1], ReadsAllAlong.last or receipts[-1]
        return super().read([receipt])


class ForgetsAcks(SqlStore):
    def ack(self, receipts: Sequence[int], now: float) -> list[int]:
        return [sum(piece.messages for piece in pieces) for pieces in self.read(receipts)]


class TellsEachTheSum(SqlStore):
    def ack(self, receipts: Sequence[int], now: float) -> list[int]:
        return [sum(super().ack(receipts, now))] * len(receipts)


class NoLeases(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return super().claim(request._replace(now=request.now + 10 * request.lease))


class ImmortalClients(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return super().claim(request._replace(client=OTHER))


class ForgetsWhatIsLostTwice(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        self._database.write(lambda db: db.change("DELETE FROM brook_claim WHERE attempts > 1", ()))
        return super().claim(request)


class WantsAll(SqlStore):
    """Whatever a message's tags are."""

    def subscribe(self, group: str, topics: Collection[int] | None, start: Position, **options: Any) -> None:
        super().subscribe(group, topics, start, **{**options, "tags": None})


class HandsBackAll(SqlStore):
    def hand_back(self, client: str) -> None:
        for each in (CLIENT, OTHER):
            super().hand_back(each)


class OneGroup(SqlStore):
    def subscribe(self, group: str, topics: Collection[int] | None, start: Position, **options: Any) -> None:
        super().subscribe("g", topics, start, **options)

    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return super().claim(request._replace(group="g"))


class ForgetsTopics(SqlStore):
    def create_topics(self, names: Collection[str]) -> None:
        super().create_topics([f"{name}{len(self.topics())}" for name in names])

    def topics(self) -> dict[str, int]:
        return {name[:1]: topic for name, topic in super().topics().items()}


class RetriesAtOnce(SqlStore):
    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        at_once = [setback._replace(due=setback.due and 0.0) for setback in setbacks]
        return super().settle(receipt, at_once, now, finished=finished)


class BelievesLateRefusals(SqlStore):
    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        super().settle(receipt, setbacks, now, finished=finished)
        return sum(setback.range.messages for setback in setbacks)


class AlwaysFinished(SqlStore):
    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        return super().settle(receipt, setbacks, now, finished=True)


class ForgetsTheDead(SqlStore):
    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        return super().settle(receipt, [s for s in setbacks if s.due], now, finished=finished)


class NeverGivesUp(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        return super().claim(request._replace(max_attempts=None))


class NoOrder(SqlStore):
    def subscribe(self, group: str, topics: Collection[int] | None, start: Position, **options: Any) -> None:
        super().subscribe(group, topics, start)


class ForgetsOptions(SqlStore):
    def subscribe(self, group: str, topics: Collection[int] | None, start: Position, **options: Any) -> None:
        super().subscribe(group, topics, start, **{"ordered": False, "tags": (), **options})


class NoTimes(SqlStore):
    def offset_at(self, topic: int, position: Position) -> int:
        return super().offset_at(topic, "earliest" if isinstance(position, datetime) else position)


class ResetsNothingInFlight(SqlStore):
    def reset(self, group: str, topics: Collection[int] | None, position: Position) -> None:
        def move(db: Session) -> None:
            group_id = find_group(db, group).id
            for topic in topics or []:
                db.change(sql.MOVE_PROGRESS, (position, group_id, topic))

        self._database.write(move)


class LooksAtWholeRuns(SqlStore):
    def scan(self, topic: int, first: int, end: int | None, *, runs: int, label: str | None = None) -> list[Piece]:
        return super().scan(topic, first, None, runs=runs, label=label)


class LooksOnceAtRules(SqlStore):
    """As a cache would."""

    def set_rule(self, topic: int, rule: Rule) -> None:
        pass

    def rules(self) -> dict[int, Rule]:
        return dict.fromkeys(super().rules(), "read-write")


class OneClosesAll(SqlStore):
    def claim(self, request: ClaimRequest) -> list[Claimed]:
        closed = {topic for topic, rule in self.rules().items() if rule == "closed"}
        return [] if closed & (request.topics or set()) else super().claim(request)


class KeepsSettingsToItself(SqlStore):
    def settings(self) -> dict[str, str]:
        return {**super().settings(), "b": "[2]"}


class DeletesWhatIsInFlight(SqlStore):
    def clean(self, topic: int, first: int, before: float, excess: int, *, runs: int) -> Cleaned:
        self._database.write(lambda db: db.change("UPDATE brook_claim SET count = 0", ()))
        return super().clean(topic, first, before, excess, runs=runs)


class DeletesOthersInstead(SqlStore):
    def clean(self, topic: int, first: int, before: float, excess: int, *, runs: int) -> Cleaned:
        return super().clean(topic, 2, before, excess, runs=runs)


class PassesOverWhatStays(SqlStore):
    def clean(self, topic: int, first: int, before: float, excess: int, *, runs: int) -> Cleaned:
        cleaned = super().clean(topic, first, before, excess, runs=runs)
        self._database.write(lambda db: db.change("UPDATE brook_progress SET next = 9 WHERE next < 9", ()))
        return cleaned


class SkipsTooFar(SqlStore):
    def skip_deleted(self, group: str) -> None:
        super().reset(group, None, "latest")


class NobodyLeaves(SqlStore):
    def hand_back(self, client: str) -> None:
        pass


class KeepsDeliveries(SqlStore):
    """Those of what was deleted too."""

    def trace(self, topic: int, offset: int) -> Trace:
        self._before = getattr(self, "_before", {})
        return self._before.setdefault(offset, super().trace(topic, offset))


class AllListenersAreOne(SqlStore):
    def tell_listeners(self, client: str, places: Collection[ListenerPlace], now: float) -> None:
        super().tell_listeners(OTHER, places, now)


class CountsWhatIsKept(SqlStore):
    def alert_counts(self) -> list[AlertCount]:
        return [dataclasses.replace(each, count=min(each.count, KEPT_ALERTS)) for each in super().alert_counts()]


class ForgetsDeliveries(SqlStore):
    def trace(self, topic: int, offset: int) -> Trace:
        return dataclasses.replace(super().trace(topic, offset), deliveries=())


DEFECTS: dict[str, type[SqlStore]] = {
    "offsets_are_dense_under_concurrency": ForgetsToLock,
    "runs_of_one_append_follow_each_other": OneOffsetForAll,
    "a_refused_append_stores_nothing": StoresRunByRun,
    "messages_come_back_as_they_were_sent": SwapsBodies,
    "groups_start_where_they_are_told": AlwaysEarliest,
    "unknown_names_are_refused": CreatesGroups,
    "claims_respect_limit_and_topics": IgnoresLimit,
    "every_topic_gets_its_turn": StarvesTopics,
    "nobody_gets_anothers_messages": ReadsAllAlong,
    "each_thread_gets_a_batch": OneBatchForAll,
    "acked_is_over": ForgetsAcks,
    "acks_at_once_are_told_apart": TellsEachTheSum,
    "an_ack_and_a_claim_are_done_together": AcksByItself,
    "an_ordered_topic_is_one_threads": NoOrder,
    "a_lease_protects_until_it_is_over": NoLeases,
    "a_dead_clients_messages_go_on_at_once": ImmortalClients,
    "what_was_lost_comes_in_order": ForgetsWhatIsLostTwice,
    "handed_back_is_free_at_once": HandsBackAll,
    "groups_do_not_disturb_each_other": OneGroup,
    "a_topic_is_created_once": ForgetsTopics,
    "refused_comes_again_when_due": RetriesAtOnce,
    "a_late_refusal_is_for_what_is_left": BelievesLateRefusals,
    "what_is_put_off_leaves_the_rest": AlwaysFinished,
    "dead_letters_are_kept_replayed_and_dropped": ForgetsTheDead,
    "what_kills_its_clients_dies_in_the_end": NeverGivesUp,
    "what_a_group_does_not_want_does_not_die": WantsAll,
    "an_ordered_group_has_one_claim_per_topic": NoOrder,
    "group_options_stay_until_changed": ForgetsOptions,
    "positions_are_found": NoTimes,
    "a_reset_begins_anew": ResetsNothingInFlight,
    "anybody_may_look": LooksAtWholeRuns,
    "rules_are_kept_on_every_call": LooksOnceAtRules,
    "one_closed_topic_closes_no_other": OneClosesAll,
    "settings_are_kept": KeepsSettingsToItself,
    "retention_spares_what_is_in_flight": DeletesWhatIsInFlight,
    "retention_by_size_leaves_the_newest": DeletesOthersInstead,
    "groups_pass_over_nothing_that_stays": PassesOverWhatStays,
    "groups_go_on_behind_what_is_gone": SkipsTooFar,
    "states_tell_what_is_where": NobodyLeaves,
    "listeners_are_seen": AllListenersAreOne,
    "the_last_alerts_are_kept_and_all_are_counted": CountsWhatIsKept,
    "a_trace_tells_what_became_of_a_message": ForgetsDeliveries,
    "deliveries_go_with_their_messages": KeepsDeliveries,
}


def test_every_check_has_a_defect_to_catch() -> None:
    assert set(DEFECTS) == {named(check) for check in testing.CHECKS}


def defective(check: testing.Check, store: type[SqlStore]) -> Callable[[Any], Store]:
    """The store with the defect that the check is to catch."""
    return type(store.__name__, (DEFECTS[named(check)], store), {})


@pytest.mark.parametrize("check", testing.CHECKS, ids=named)
def test_suite_catches(check: testing.Check, tmp_path: Path) -> None:
    make = defective(check, SqliteStore)
    with pytest.raises(AssertionError):
        testing.run_check(check, lambda name: make(tmp_path / f"{name}.db"))


@pytest.mark.real
@pytest.mark.parametrize("check", testing.CHECKS, ids=named)
def test_suite_catches_on_mariadb(check: testing.Check, maria: MariaDb) -> None:
    make, target = defective(check, MysqlStore), mysql_target(maria.url(maria.new_database()))
    with pytest.raises(AssertionError):
        testing.run_check(check, lambda name: make(target))
