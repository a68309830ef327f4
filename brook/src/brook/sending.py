"""From messages to runs, and from the runs' offsets back to the messages'."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from brook.checks import as_extra, require_bytes, require_extras
from brook.errors import BadMessage, BodyTooLarge
from brook.group_commit import GroupCommit
from brook.model import MessageId, Outgoing
from brook.packing import Body, Extra, Run, largest_body, pack
from brook.settings import LiveSettings
from brook.topics import Topics


class Packed(NamedTuple):
    """Messages as runs."""

    runs: list[Run]
    placed: list[tuple[int, list[int]]]  # of each topic: its first run, and where its messages stand
    messages: int

    def offsets(self, firsts: Sequence[int]) -> list[int]:
        """Of each message, by the first of each run: those of a topic follow each other, over all of its runs."""
        offsets = [0] * self.messages
        for run, indexes in self.placed:
            for offset, index in enumerate(indexes, firsts[run]):
                offsets[index] = offset
        return offsets


class Packer:
    def __init__(self, topics: Topics, settings: LiveSettings) -> None:
        self.topics = topics
        self._settings = settings

    def pack(self, topics: Sequence[int | str], bodies: Sequence[Body], extras: Sequence[Extra | None] = ()) -> Packed:
        if len(topics) != len(bodies):
            raise BadMessage(f"{len(topics)} topics for {len(bodies)} bodies: give each body its topic")
        require_bytes(bodies)
        self.check_size(max(map(len, bodies), default=0))
        packed = Packed([], [], len(bodies))
        for topic, indexes in self._by_topic(topics):
            packed.placed.append((len(packed.runs), indexes))
            packed.runs.extend(
                pack(topic, [bodies[i] for i in indexes], [extras[i] for i in indexes] if extras else ())
            )
        return packed

    def named(self, names: list[str]) -> list[int]:
        return self.topics.create(names) if self._settings.now.auto_create else self.topics.ids(names)

    def check_size(self, size: int) -> None:
        if size > (limit := self._settings.now.max_body):
            raise BodyTooLarge(f"{size} bytes: a body may have {limit}: send less, or set a larger max_body")

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
        self.topics.require(ids)
        return {**dict(zip(names, self.named(names), strict=True)), **dict(zip(ids, ids, strict=True))}


class Sender:
    def __init__(self, commit: GroupCommit, packer: Packer) -> None:
        self._commit = commit
        self._packer = packer

    def send(
        self, topic: str, body: Body, key: str | None, tags: Sequence[str], properties: Mapping[str, str] | None
    ) -> MessageId:
        extra = as_extra(key, tags, properties)
        require_bytes([body])
        self._packer.check_size(len(body))
        topic_id = self._packer.topics.known(topic)
        if topic_id is None:
            (topic_id,) = self._packer.named([topic])
        return MessageId(topic, self._commit.one(topic_id, body, extra))

    def send_many(self, messages: Sequence[Outgoing]) -> list[MessageId]:
        names, bodies = [m.topic for m in messages], [m.body for m in messages]
        offsets = self.append(names, bodies, [m.extra for m in messages])
        return [MessageId(name, offset) for name, offset in zip(names, offsets, strict=True)]

    def append(
        self, topics: Sequence[int | str], bodies: Sequence[Body], extras: Sequence[Extra | None] = ()
    ) -> list[int]:
        packed = self._packer.pack(topics, bodies, extras)
        return packed.offsets(self._commit.runs(packed.runs))

    def append_runs(self, runs: Sequence[Run]) -> list[int]:
        self._packer.topics.require({run.topic for run in runs})
        require_bytes([run.data for run in runs])
        for run in runs:
            require_extras(run)
        self._packer.check_size(max(map(largest_body, runs), default=0))
        return self._commit.runs(runs)
