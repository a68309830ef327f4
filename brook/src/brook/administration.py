"""What is done to a queue rather than with it: topics and their rules, settings, retention, resets, dead letters; and
looking at messages, groups and clients.
"""

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import get_args

from brook.alerts import Alert
from brook.archive import Archive, Search
from brook.errors import BadSetting
from brook.metrics import metrics_text
from brook.model import DeadLetter, Message, MessageId, Position, Rule
from brook.retention import clean_all
from brook.settings import LiveSettings, Settings, checked
from brook.sql.statements import MAX_OFFSET
from brook.states import ClientState, GroupState, ListenerState, TopicState, Trace
from brook.stores.base import Store
from brook.topics import Topics, as_names


class Administration:
    def __init__(self, store: Store, topics: Topics, settings: LiveSettings, clock: Callable[[], float]) -> None:
        self._store = store
        self._topics = topics
        self._settings = settings
        self._clock = clock
        self._archive = Archive(store, topics)

    # --- topics

    def create_topics(self, names: str | Iterable[str]) -> list[int]:
        """Create those that are not there yet, all or none; the ids of all."""
        return self._topics.create(as_names(names))

    def topics(self) -> dict[str, int]:
        """The ids of all topics, by name."""
        return self._store.topics()

    def rules(self) -> dict[str, Rule]:
        """What each topic may be used for, by name."""
        rules = self._store.rules()
        return {name: rules[topic] for name, topic in self.topics().items()}

    def set_rule(self, topic: str, rule: Rule) -> None:
        """Say what the topic may be used for; every call of every process is held to it from here on."""
        require(rule in get_args(Rule), "rule", rule, ", ".join(get_args(Rule)))
        (topic_id,) = self._topics.ids([topic])
        self._store.set_rule(topic_id, rule)

    # --- settings

    @property
    def settings(self) -> Settings:
        """What holds now; a change by another process is seen within a second."""
        return self._settings.now

    def set(self, name: str, value: object) -> None:
        """Change a setting, for every process that has the queue open; None: back to its default."""
        self._settings.change(name, value)

    # --- retention

    def clean(self, *, keep_seconds: float | None = None, keep_bytes: int | None = None) -> dict[str, int]:
        """Delete what is too old or too much, in small transactions; how many messages of each topic.

        keep_seconds, keep_bytes: of each topic, instead of the settings of these names. Read or not, it goes; but
        what a group has in flight stays, and so does what is among its dead letters.
        """
        given = {"keep_seconds": keep_seconds, "keep_bytes": keep_bytes}
        overrides = {name: checked(name, value) for name, value in given.items() if value is not None}
        return clean_all(self._store, replace(self.settings, **overrides), self._clock())

    # --- groups

    def lag(self, group: str) -> int:
        """How many messages of its topics the group is not done with; 0: it has read to the end, for now."""
        return self._store.lag(group)

    def reset(self, group: str, position: Position, topics: str | Iterable[str] | None = None) -> None:
        """Let the group go on from there, in all topics that it follows or in these.

        What it has in flight there is taken from it; a later ack of that is a LeaseLost.
        """
        require_position("position", position)
        self._store.reset(group, None if topics is None else self._topics.ids(as_names(topics)), position)

    # --- looking

    def get(self, topic: str, offset: int) -> Message | None:
        """The message with this id; None if it is not there (any more)."""
        require_offset("offset", offset)
        return self._archive.get(topic, offset)

    def query(
        self,
        topic: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        first: int = 0,
        limit: int = 100,
    ) -> list[Message]:
        """Messages from the offset `first` on, with this key, this tag, sent in this time: the first so many.

        It reads what it looks through: narrow a large topic down by since or first.
        """
        require_offset("first", first)
        require_count("limit", limit)
        search = Search(key, tag, _seconds(since), _seconds(until))
        return self._archive.query(topic, search, first, limit)

    def tail(self, topic: str, last: int = 10) -> list[Message]:
        """The last messages of the topic."""
        require_count("last", last)
        return self._archive.tail(topic, last)

    # --- watching

    def topic_states(self, seconds: float = 60.0) -> list[TopicState]:
        """All topics, the busiest of the last so many seconds first; `recent` counts those."""
        require(0 < seconds < math.inf, "seconds", seconds, "a number of seconds above 0")
        states = self._store.topic_states(self._clock() - seconds)
        return sorted(states, key=lambda state: (-state.recent, -state.sent, state.topic))

    def group_states(self) -> list[GroupState]:
        """How far every group is, in each of its topics."""
        return self._store.group_states()

    def client_states(self) -> list[ClientState]:
        """Who consumes, and what each has in flight."""
        return self._store.client_states()

    def listener_states(self) -> list[ListenerState]:
        """How far every listener is, in each of its topics, as it last told."""
        return self._store.listener_states()

    def alerts(self, limit: int = 100) -> list[Alert]:
        """The newest first; of each group and kind the last 100 are kept."""
        require_count("limit", limit)
        return self._store.alerts(limit)

    def trace(self, topic: str, offset: int) -> Trace:
        """Who sent a message, to whom it was handed out, when, how often, and what came of it."""
        require_offset("offset", offset)
        (topic_id,) = self._topics.ids([topic])
        return self._store.trace(topic_id, offset)

    def metrics(self) -> str:
        """For Prometheus."""
        return metrics_text(
            self._store.topic_states(self._clock()),
            self.group_states(),
            self.client_states(),
            self.listener_states(),
            self._store.alert_counts(),
        )

    # --- dead letters

    def dead(
        self, group: str, limit: int = 1000, *, topic: str | None = None, offset: int | None = None
    ) -> list[DeadLetter]:
        """The first so many messages that the group has given up on, by topic and offset; or of one of these alone."""
        require_count("limit", limit)
        require_offset("offset", offset or 0)
        topic_id = None if topic is None else self._topics.ids([topic])[0]
        deaths = self._store.dead(group, limit, topic=topic_id, offset=offset)
        self._topics.require({death.range.topic for death in deaths})
        return [
            DeadLetter(
                topic=self._topics.names[each.topic],
                offset=each.first,
                attempts=each.attempts,
                died=died,
                cause=cause,
            )
            for each, died, cause in deaths
        ]

    def replay_dead(self, group: str, letters: Iterable[DeadLetter | MessageId]) -> int:
        """Let the group have them again at once, as if for the first time; how many were there."""
        return self._store.replay_dead(group, self._places(letters), self._clock())

    def drop_dead(self, group: str, letters: Iterable[DeadLetter | MessageId]) -> int:
        """Forget them; how many were there."""
        return self._store.drop_dead(group, self._places(letters))

    def _places(self, letters: Iterable[DeadLetter | MessageId]) -> list[tuple[int, int]]:
        many = list(letters)
        return list(zip(self._topics.ids([m.topic for m in many]), [m.offset for m in many], strict=True))


def require(right: bool, setting: str, value: object, wanted: str) -> None:
    if not right:
        raise BadSetting(f"{setting}={value!r}: give {wanted}")


def require_position(setting: str, position: Position) -> None:
    right = position in ("earliest", "latest") or isinstance(position, datetime) or _is_whole(position, MAX_OFFSET)
    require(right, setting, position, f"earliest, latest, an offset from 0 to {MAX_OFFSET}, or a datetime")


def require_offset(setting: str, offset: int) -> None:
    require(_is_whole(offset, MAX_OFFSET), setting, offset, f"a number from 0 to {MAX_OFFSET}")


def require_count(setting: str, count: int) -> None:
    require(_is_whole(count, sys.maxsize), setting, count, f"a number from 0 to {sys.maxsize}")


def _is_whole(value: object, most: int) -> bool:
    return isinstance(value, int) and 0 <= value <= most


def _seconds(time: datetime | None) -> float | None:
    return None if time is None else time.timestamp()
