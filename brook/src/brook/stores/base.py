"""What every store must do, and the rules that make it a queue.

1. *Dense, in commit order.* A topic's offsets are handed out inside the transaction that stores the
   messages, under a lock that is held until it has committed. So offset n is committed before n + 1 is handed
   out, and whoever sees n sees all before it. A transaction of the caller's own either is that transaction
   (SQLite): however long it stays open after it took its place, nobody is behind it, and one that is rolled back
   leaves no gap to wait for. Or it has no place before it has committed, and gets one then from a transaction
   of ours (MariaDB). Either way no group can have passed it by.
2. *Never skipped.* A group's progress in a topic is the offset below which everything has been claimed.
   It moves only in the transaction that writes the claim for exactly the offsets it moves over, and
   only over committed ones (by 1, all below the topic's next offset are). So every committed message
   is at every moment above its group's progress, or in one claim, or waiting for a retry, or dead, or
   acked; or it was deleted, by retention, which moves the progress over what it deletes, or by hand.
3. *One owner.* A message is in at most one claim of a group: claims of new messages begin at the
   progress, under the lock of rule 1, and one that changes hands is moved by the transaction that
   gives it the new receipt. It changes hands only once its lease is over or its client is certainly
   dead. Receipts are never used twice, so that a late ack cannot ack what another client holds now.
4. *Acked is over.* What is acked is below the progress and neither claimed, waiting nor dead, and is never
   handed out again.
5. *Refused comes again.* A refusal moves messages from their claim to the retries or to the dead letters in
   one transaction, so attempts are counted exactly: each claim of a message adds one.
6. *In order.* In a group that is ordered a topic has one claim at a time. Whoever has it looks which
   keys wait for a retry, and lets what it has of them wait behind; nobody else can change that meanwhile.
7. *Reset.* A reset moves the progress of a group in a topic, and in the same transaction drops what the
   group has in flight there and what it has given up from the new place on: rules 2 to 4 hold again,
   from there. Nothing else is written, whatever the distance.
8. *Rules.* What a topic may be used for is looked at in the transaction that uses it.
9. *Whole or not at all.* Each method is one transaction; one that raises `Refused` has changed nothing.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, Protocol

from brook.alerts import Alert
from brook.claiming import Range, Setback
from brook.model import Claimed, Position, Rule
from brook.packing import Piece, Run
from brook.states import AlertCount, ClientState, GroupState, ListenerState, TopicState, Trace

KEPT_ALERTS = 100


class ClaimRequest(NamedTuple):
    group: str
    topics: frozenset[int] | None  # None for all that the group has subscribed to; Forbidden if none may be read
    limit: int  # messages of a batch
    client: str
    now: float  # seconds of the wall clock
    lease: float  # seconds
    threads: tuple[str, ...] = ("",)  # the client's, each of which wants a batch
    max_attempts: int | None = None  # what was lost after so many is dead; None: it goes on for ever
    on_dead: Callable[[int], None] | None = None  # told, afterwards, how many messages are dead for that


class Death(NamedTuple):
    """A dead letter."""

    range: Range  # one message
    died: float  # seconds of the wall clock
    cause: str


class Waiting(NamedTuple):
    """The first message of a key that waits for a retry."""

    offset: int
    due: float


class ListenerPlace(NamedTuple):
    listener: int  # of those of its client
    topic: int
    next: int  # the first offset that it is not done with


class Cleaned(NamedTuple):
    """What one step of retention did."""

    messages: int  # that were deleted
    bytes: int  # that it came past: what was deleted, and what stays though it is too old or too much
    next: int | None  # the offset to go on from; None: the rest is to stay


class Writer(Protocol):
    """What can be done in a transaction of the caller's own."""

    def topics(self) -> dict[str, int]:
        """The ids of all topics by name."""

    def create_topics(self, names: Collection[str]) -> None:
        """Topics that are there already stay as they are."""

    def append(self, runs: Sequence[Run], now: float) -> list[int] | None:
        """Store all messages in one transaction; the first offset of each run, or None if they get them later.

        Forbidden by a topic's rule.
        """


class Store(Writer, Protocol):
    """A database. Every method may be called from any thread."""

    def append(self, runs: Sequence[Run], now: float) -> list[int]:
        """Store all messages in one transaction; the first offset of each run. Forbidden by a topic's rule."""

    def within(self, connection: object) -> Writer:
        """Write in the transaction of this DBAPI connection: committed with it or not at all.

        Either what it appends has its offsets at once, and by rule 1 nobody gets later ones before it has ended; or it
        gets them after the commit, before anybody looks.
        """

    def rules(self) -> dict[int, Rule]:
        """What each topic may be used for."""

    def set_rule(self, topic: int, rule: Rule) -> None:
        """From here on, for everybody."""

    def subscribe(
        self,
        group: str,
        topics: Collection[int] | None,
        start: Position,
        *,
        ordered: bool | None = None,
        tags: Collection[str] | None = None,
    ) -> None:
        """Topics that the group follows already stay where they are; None means all, also later ones.

        ordered, tags: see Claimed; None leaves what the group has, or takes the default.
        """

    def reset(self, group: str, topics: Collection[int] | None, position: Position) -> None:
        """Let the group go on from there, in the topics given, or in all that it follows."""

    def offset_at(self, topic: int, position: Position) -> int:
        """The offset that the position means in the topic now."""

    def scan(self, topic: int, first: int, end: int | None, *, runs: int, label: str | None = None) -> list[Piece]:
        """What is stored from one offset to before another, or to the end: the first so many runs.

        label: of the runs alone in which a message has this key or this tag.
        """

    def claim(self, request: ClaimRequest) -> list[Claimed]:
        """Hand out a batch of up to `limit` messages for each of the threads, as if one asked after the other.

        What its owner lost comes first, then what is due again, then what is new. There are fewer batches than
        threads if the messages do not last.
        """

    def read(self, receipts: Sequence[int]) -> list[list[Piece]]:
        """The messages that each of them holds; those that have been deleted are left out."""

    def ack(self, receipts: Sequence[int], now: float) -> list[int]:
        """The claims are over; how many messages each still held."""

    def ack_and_claim(self, receipts: Sequence[int], request: ClaimRequest) -> tuple[list[int], list[Claimed]]:
        """Both, in one transaction."""

    def settle(self, receipt: int, setbacks: Sequence[Setback], now: float, *, finished: bool) -> int:
        """Let the setbacks wait or be dead, as far as the claim still holds them; how many messages it held.

        finished: the rest of the claim is acked; otherwise it goes on.
        """

    def waiting_keys(self, receipt: int) -> dict[tuple[int, str], Waiting]:
        """The keys, by topic, that wait for a retry in the receipt's group; it is an ordered one."""

    def renew(self, receipt: int, until: float) -> int:
        """The lease ends at `until` instead; how many messages the claim still holds."""

    def hand_back(self, client: str) -> None:
        """Let others have at once what this client has claimed; it is gone."""

    def beat(self, client: str, group: str, threads: int, now: float) -> None:
        """Say that the client is there, consuming for the group."""

    def tell_listeners(self, client: str, places: Collection[ListenerPlace], now: float) -> None:
        """Say where all of the client's listeners are."""

    def add_alert(self, alert: Alert) -> None:
        """Keep it; of each group and kind the last KEPT_ALERTS stay."""

    def lag(self, group: str) -> int:
        """How many messages of its topics the group is not done with: new, claimed or waiting for a retry."""

    def dead(self, group: str, limit: int, *, topic: int | None = None, offset: int | None = None) -> list[Death]:
        """The first so many dead letters, by topic and offset; of all, or of a topic or an offset alone."""

    def replay_dead(self, group: str, messages: Collection[tuple[int, int]], now: float) -> int:
        """Let the dead letters (topic, offset) begin anew; how many were there."""

    def drop_dead(self, group: str, messages: Collection[tuple[int, int]]) -> int:
        """Forget the dead letters; how many were there."""

    def stored_bytes(self, topic: int) -> int:
        """How large the topic's bodies are together."""

    def clean(self, topic: int, first: int, before: float, excess: int, *, runs: int) -> Cleaned:
        """Delete, of the first so many runs from an offset on, what is too old or too much.

        before: what was sent earlier is too old. excess: so many bytes are too many, the first ones.
        What any group has in flight or among its dead letters stays, and nothing that is newer goes in its stead.
        """

    def skip_deleted(self, group: str) -> None:
        """Let the group go on behind what is not there any more."""

    def settings(self) -> dict[str, str]:
        """All that were set, as JSON."""

    def set_setting(self, name: str, value: str | None) -> None:
        """None: back to the default."""

    def topic_states(self, since: float) -> list[TopicState]:
        """All topics; `recent` counts from `since` on."""

    def group_states(self) -> list[GroupState]:
        """All groups, in each of their topics."""

    def client_states(self) -> list[ClientState]:
        """All clients that have said that they are there, or have something in flight."""

    def listener_states(self) -> list[ListenerState]:
        """All listeners that have told where they are, in each of their topics."""

    def alerts(self, limit: int) -> list[Alert]:
        """Those that are kept, the newest first."""

    def alert_counts(self) -> list[AlertCount]:
        """Of each group and kind, also those that are kept no more."""

    def trace(self, topic: int, offset: int) -> Trace:
        """What is known of a message."""

    def remove(self) -> None:
        """Delete the queue: all of its tables. Nobody may be at work with it."""

    def close(self) -> None:
        """Release the database; a second call does nothing."""
