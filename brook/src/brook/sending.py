"""From messages to runs, and from the runs' offsets back to the messages'."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from brook.errors import BadMessage, BodyTooLarge
from brook.group_commit import GroupCommit
from brook.model import MessageId, Outgoing
from brook.packing import Body, Extra, Run, largest_body, pack
from brook.settings import LiveSettings
from brook.topics import Topics


class Sender:
    def __init__(self, commit: GroupCommit, topics: Topics, settings: LiveSettings) -> None:
        self._commit = commit
        self._topics = topics
        self._settings = settings

    def send(
        self, topic: str, body: Body, key: str | None, tags: Sequence[str], properties: Mapping[str, str] | None
    ) -> MessageId:
        extra = (key, tags, dict(properties or {})) if key is not None or tags or properties else None
        return MessageId(topic, self.one(topic, body, extra))

    def send_many(self, messages: Sequence[Outgoing]) -> list[MessageId]:
        names, bodies = [m.topic for m in messages], [m.body for m in messages]
        offsets = self.append(names, bodies, [m.extra for m in messages])
        return [MessageId(name, offset) for name, offset in zip(names, offsets, strict=True)]

    def one(self, topic: str, body: Body, extra: Extra | None) -> int:
        self._check_size(len(body))
        topic_id = self._topics.known(topic)
        if topic_id is None:
            (topic_id,) = self._named([topic])
        return self._commit.one(topic_id, body, extra)

    def append(
        self, topics: Sequence[int | str], bodies: Sequence[Body], extras: Sequence[Extra | None] = ()
    ) -> list[int]:
        if len(topics) != len(bodies):
            raise BadMessage(f"{len(topics)} topics for {len(bodies)} bodies: give each body its topic")
        self._check_size(max(map(len, bodies), default=0))
        runs: list[Run] = []
        placed: list[tuple[int, list[int]]] = []  # a topic's first run, and where its messages stand
        for topic, indexes in self._by_topic(topics):
            placed.append((len(runs), indexes))
            runs += pack(topic, [bodies[i] for i in indexes], [extras[i] for i in indexes] if extras else ())
        return _offsets(len(bodies), placed, self._commit.runs(runs))

    def append_runs(self, runs: Sequence[Run]) -> list[int]:
        self._topics.require({run.topic for run in runs})
        self._check_size(max(map(largest_body, runs), default=0))
        return self._commit.runs(runs)

    def _by_topic(self, topics: Sequence[int | str]) -> list[tuple[int, list[int]]]:
        """The ids of the topics, each with the indexes at which it stands."""
        ids = self._ids(list(dict.fromkeys(topics)))
        indexes: defaultdict[int, list[int]] = defaultdict(list)
        for index, topic in enumerate(topics):
            indexes[ids[topic]].append(index)
        return list(indexes.items())

    def _ids(self, topics: list[int | str]) -> dict[int | str, int]:
        names = [topic for topic in topics if isinstance(topic, str)]
        ids = [topic for topic in topics if not isinstance(topic, str)]
        self._topics.require(ids)
        return {**dict(zip(names, self._named(names), strict=True)), **dict(zip(ids, ids, strict=True))}

    def _named(self, names: list[str]) -> list[int]:
        return self._topics.create(names) if self._settings.now.auto_create else self._topics.ids(names)

    def _check_size(self, size: int) -> None:
        if size > (limit := self._settings.now.max_body):
            raise BodyTooLarge(f"{size} bytes: a body may have {limit}: send less, or set a larger max_body")


def _offsets(count: int, placed: list[tuple[int, list[int]]], firsts: list[int]) -> list[int]:
    """The offset of each message: those of a topic follow each other, over all of its runs."""
    offsets = [0] * count
    for run, indexes in placed:
        for offset, index in enumerate(indexes, firsts[run]):
            offsets[index] = offset
    return offsets
