"""What there is to see of a queue."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TopicState:
    topic: str
    rule: str
    sent: int  # messages, ever
    stored: int  # messages that are still there
    bytes: int  # of their bodies
    oldest: float | None  # when the first of them was sent, seconds of the wall clock
    newest: float | None
    recent: int  # messages that were sent in the time that was asked for


@dataclass(frozen=True, slots=True)
class GroupState:
    group: str
    topic: str
    next: int  # the first offset that nobody of the group has claimed
    end: int  # the offset that the topic's next message will have
    claimed: int  # messages in flight
    waiting: int  # for a retry
    dead: int

    @property
    def lag(self) -> int:
        return self.end - self.next + self.claimed + self.waiting


@dataclass(frozen=True, slots=True)
class ClientState:
    client: str
    group: str
    threads: int  # of its consumer; 0: it pulls
    seen: float | None  # when its consumer last said that it is there, seconds of the wall clock
    claimed: int  # messages in flight
    since: float | None  # when the oldest of them was claimed
    dead: bool  # the process certainly is no more


@dataclass(frozen=True, slots=True)
class ListenerState:
    """How far a listener is in a topic, as it last told."""

    client: str
    listener: int  # of those of the client
    topic: str
    next: int  # the first offset that it is not done with
    end: int  # the offset that the topic's next message will have
    seen: float  # when it told, seconds of the wall clock
    dead: bool  # the process certainly is no more

    @property
    def lag(self) -> int:
        return self.end - self.next


@dataclass(frozen=True, slots=True)
class AlertCount:
    group: str
    kind: str
    count: int  # ever


@dataclass(frozen=True, slots=True)
class Delivery:
    """One time that a message was handed out."""

    group: str
    client: str
    thread: str
    attempts: int  # which time it was
    claimed: float  # when, seconds of the wall clock
    ended: float | None
    outcome: str  # acked, refused, dead, lost, or in flight
    cause: str


@dataclass(frozen=True, slots=True)
class Trace:
    """What is known of a message."""

    sent: float | None  # when; None: it is not stored (any more)
    sender: str | None  # host/pid
    thread: str | None
    deliveries: tuple[Delivery, ...]
    standing: dict[str, str]  # by group: not yet, in flight, waiting, dead or done
