"""Kafka through librdkafka: a topic of one partition each, a consumer group for each group, an ack a delivery report.

librdkafka connects, batches and sends again by itself. A sender lets it do so only if it is idempotent: then what was
in flight when the broker died is sent once more, and answered. Otherwise it tries once, and what is not answered is
unknown.

Kafka keeps one position for a group in a topic: to acknowledge a message acknowledges all before it. It does not
mark a message that comes again; its position tells.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ackworth.driver.contract import Address, Answers, ConnectionLost, Incoming, Int64s, Outgoing, answered, joined
from ackworth.driver.matrix import as_matrix
from ackworth.driver.wire import Deadline
from ackworth.model.errors import Unavailable
from ackworth.model.outcome import Outcome

try:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
    from confluent_kafka.admin import NewTopic, OffsetSpec

    from ackworth.driver.librdkafka import ANSWER_WITHIN, UNCLEAR, Admin, Trouble, await_all, lost, made, settings
except ModuleNotFoundError as error:
    raise Unavailable("Kafka needs the package confluent-kafka: pip install 'ackworth[kafka]'") from error

MARKS_REPEATS = False
# Errors with which Kafka, or the library before it, refuses a message and stores nothing.
DEFINITE = {
    KafkaError.MSG_SIZE_TOO_LARGE: "it is too large (MSG_SIZE_TOO_LARGE)",
    KafkaError.INVALID_RECORD: "the broker does not take such a record (INVALID_RECORD)",
    KafkaError.POLICY_VIOLATION: "against a policy (POLICY_VIOLATION)",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not permitted (TOPIC_AUTHORIZATION_FAILED)",
    KafkaError.NOT_ENOUGH_REPLICAS: "too few replicas (NOT_ENOUGH_REPLICAS)",
}
REASONS = ("", "no answer in time", "the connection broke", "an error that may mean anything", *DEFINITE.values())
_LOOK_AGAIN = 0.02
_GLANCE = 0.001
_COMMITTED_WITHIN = 10.0  # the library itself would wait for ever
_MEMBERS_LEAVE_WITHIN = 30.0  # a group is deleted when the sessions of its members are over
# No limit of the library's before ours: a sender is never given more than its window.
_SENDER = {
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": (1 << 31) - 1,
    "message.max.bytes": 1_000_000_000,  # the broker decides
    # As the vendor's own client has it. Without a limit the library sends what it has in ever smaller requests, each of
    # which a broker that syncs before it answers syncs by itself.
    "max.in.flight.requests.per.connection": 5,
}
_RECEIVER = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "partition.assignment.strategy": "roundrobin",  # with one partition each, `range` gives all topics to one
    "session.timeout.ms": 6000,  # the least that a broker takes as it comes: until it shares out a dead one's topics
    "heartbeat.interval.ms": 500,
}


def prepare(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    admin = Admin(address)
    known = admin.cluster().topics
    new = [NewTopic(topic, num_partitions=1) for topic in topics if topic not in known]
    if new:
        await_all(admin.client.create_topics(new, request_timeout=ANSWER_WITHIN))
    if topics:
        _await_leaders(admin, topics)


def _await_leaders(admin: Admin, topics: Sequence[str]) -> None:
    """A topic that was made can be written to a little later; until then `acks: 0` loses what is sent."""
    ends = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in topics}
    deadline = Deadline(ANSWER_WITHIN)
    while True:
        try:
            return await_all(admin.client.list_offsets(ends, request_timeout=1.0))
        except ConnectionLost:
            if not deadline.left():
                raise
        time.sleep(_LOOK_AGAIN)
        admin.cluster()  # the library does not ask again by itself who leads


def version(address: Address) -> str:
    """A broker does not tell its version."""
    return f"Kafka, cluster {Admin(address).cluster().cluster_id}"


def remove(address: Address, topics: Sequence[str], groups: Sequence[str]) -> None:
    client = Admin(address).client
    gone = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND
    await_all(client.delete_topics(list(topics), request_timeout=ANSWER_WITHIN), gone)
    deadline = Deadline(_MEMBERS_LEAVE_WITHIN)
    while True:
        try:
            return await_all(client.delete_consumer_groups(list(groups), request_timeout=ANSWER_WITHIN), gone)
        except ConnectionLost:
            if not deadline.left():
                raise
        time.sleep(_LOOK_AGAIN)


class Sender:
    def __init__(self, address: Address, topics: Sequence[str], producer: int) -> None:
        idempotent = address["acks"] == "idempotent"
        self._topics = topics
        self._acked: list[int] = []
        self._failed: list[tuple[int, Any]] = []
        self._trouble = Trouble(lives_on=idempotent)
        acks = {"enable.idempotence": True} if idempotent else {"acks": address["acks"], "retries": 0}
        self._producer = made(Producer, {**settings(address), **_SENDER, **acks}, self._trouble)

    def send(self, batch: Outgoing) -> None:
        order = np.argsort(batch.topics, kind="stable")
        width, data = batch.bodies.shape[1], batch.bodies.tobytes()
        sizes, report = batch.sizes.tolist(), self._report
        for index, rows in _by_topic(batch.topics[order], order):
            messages = [
                {
                    "value": data[row * width : row * width + sizes[row]],
                    "callback": partial(report, batch.first_seq + row),
                }
                for row in rows
            ]
            if self._producer.produce_batch(self._topics[index], messages, partition=0) < len(messages):
                self._not_taken(messages)

    def _not_taken(self, messages: Sequence[dict[str, Any]]) -> None:
        """Those that the library itself refused."""
        for message in messages:
            if (error := message.get("_error")) is not None:
                message["callback"](error, None)

    def _report(self, seq: int, error: Any, message: Any) -> None:
        if error is None:
            self._acked.append(seq)
        else:
            self._failed.append((seq, error))

    def answers(self, wait: float) -> Answers:
        deadline = Deadline(wait)
        self._producer.poll(0)
        while not (self._acked or self._failed):
            self._trouble.check()
            if not deadline.left():
                break
            self._producer.poll(deadline.left())  # which also ends when there is other news
        acked, self._acked = self._acked, []
        failed, self._failed = self._failed, []
        return joined([answered(np.array(acked, np.int64), Outcome.ACKED), *map(_failure, failed)])

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(0)


def _by_topic(topics: Int64s, order: Int64s) -> list[tuple[int, list[int]]]:
    """The rows of each topic, in order."""
    begins = [0, *(np.flatnonzero(np.diff(topics)) + 1).tolist()]
    parts = np.split(order, begins[1:])
    return [(int(topics[begin]), part.tolist()) for begin, part in zip(begins, parts, strict=True)]


def _failure(failed: tuple[int, Any]) -> Answers:
    seq, error = failed
    seqs, code = np.array([seq]), error.code()
    if code in DEFINITE:
        return answered(seqs, Outcome.REFUSED, REASONS.index(DEFINITE[code]))
    return answered(seqs, Outcome.UNKNOWN, lost(error).reason)


class Receiver:
    def __init__(self, address: Address, topics: Sequence[str], group: str, consumer: int) -> None:
        self._index = {topic: i for i, topic in enumerate(topics)}
        self._trouble = Trouble(lives_on=False)
        self._assigned: set[str] | None = None  # the topics that are its own; None while they are shared out
        self._at_end: set[str] = set()
        self._early: list[Any] = []  # messages that came while a commit was awaited
        self._commits: list[Any] = []  # what was said of them: None, or the first error
        names = {"group.id": group, "group.instance.id": f"consumer-{consumer}"}  # known again after a reconnect
        told = {**settings(address), **_RECEIVER, **names, "on_commit": self._commit_answered}
        self._consumer = made(Consumer, told, self._trouble)
        self._consumer.subscribe(list(topics), on_assign=self._assign, on_revoke=self._unassign, on_lost=self._unassign)

    def _assign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        self._assigned, self._at_end = {partition.topic for partition in partitions}, set()

    def _unassign(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Another will get what came and was not given to anybody."""
        self._assigned, self._early = None, []

    @property
    def told_empty(self) -> bool:
        return self._assigned is not None and self._assigned <= self._at_end

    def receive(self, limit: int, wait: float) -> Incoming | None:
        deadline = Deadline(wait)
        new = self._messages(partial(self._consumer.consume, max(1, limit - len(self._early)), 0))
        found, self._early = self._early + new, []
        while not found:
            self._trouble.check()
            if not deadline.left():
                return None
            found = self._next(deadline.left())
        return _incoming(found, self._index)

    def _next(self, wait: float) -> list[Any]:
        return self._messages(lambda: filter(None, [self._consumer.poll(wait)]))

    def _messages(self, get: Callable[[], Any]) -> list[Any]:
        """Those that are messages; of the others it is noted what they say."""
        found = []
        try:
            for message in get():
                if (error := message.error()) is None:
                    found.append(message)
                    self._at_end.discard(message.topic())
                elif error.code() == KafkaError._PARTITION_EOF:
                    self._at_end.add(message.topic())
                else:
                    raise lost(error)
        except (KafkaException, RuntimeError) as error:
            raise ConnectionLost(str(error), UNCLEAR) from error
        return found

    def acknowledge(self, incoming: Incoming) -> None:
        offsets = [TopicPartition(topic, 0, offset + 1) for topic, offset in incoming.token.items()]
        self._commits.clear()
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException as error:
            raise lost(error.args[0]) from error
        deadline = Deadline(_COMMITTED_WITHIN)
        while not self._commits:
            found = self._next(_GLANCE)  # the answer is told in passing, and so is that topics are another's now
            self._early += found
            self._trouble.check()
            deadline.check(UNCLEAR)
        if (said := self._commits[0]) is not None:
            raise lost(said)

    def _commit_answered(self, error: Any, partitions: Sequence[Any]) -> None:
        self._commits.append(error or next((part.error for part in partitions if part.error is not None), None))

    def close(self) -> None:
        self._consumer.close()


def _incoming(messages: Sequence[Any], index: dict[str, int]) -> Incoming:
    bodies, lengths = as_matrix([message.value() for message in messages])
    last = {message.topic(): message.offset() for message in messages}
    return Incoming(
        bodies=bodies,
        lengths=lengths,
        topics=np.array([index[message.topic()] for message in messages]),
        positions=np.array([message.offset() for message in messages]),
        redelivered=np.zeros(len(messages), bool),
        token=last,
    )
