"""The topics that a client knows, so that names and ids are looked up once."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from brook.checks import is_text
from brook.errors import BadMessage, UnknownTopic
from brook.stores.base import Writer


class Topics:
    def __init__(self, store: Writer, known: Mapping[int, str] | None = None) -> None:
        self._store = store
        self._names: dict[int, str] = dict(known or {})
        self._ids: dict[str, int] = {name: topic for topic, name in self._names.items()}

    @property
    def names(self) -> Mapping[int, str]:
        return self._names

    def create(self, names: Sequence[str]) -> list[int]:
        if wrong := [name for name in names if not is_text(name)]:
            raise BadMessage(f"{wrong[0]!r}: a topic must have a name, which is text: give it one")
        if self._unknown(names):
            self._store.create_topics(names)
        return self.ids(names)

    def known(self, name: str) -> int | None:
        """The topic's id, if it has been asked for before."""
        return self._ids.get(name)

    def ids(self, names: Sequence[str]) -> list[int]:
        if unknown := self._unknown(names):
            raise UnknownTopic(f"{unknown[0]!r}: no such topic: create_topics([{unknown[0]!r}]) first")
        return [self._ids[name] for name in names]

    def require(self, ids: Collection[int]) -> None:
        """UnknownTopic unless each of the ids is a topic's."""
        if not self._names.keys() >= set(ids):
            self._look()
        if unknown := set(ids) - self._names.keys():
            raise UnknownTopic(f"{min(unknown)}: no topic has this id: use those of create_topics()")

    def _unknown(self, names: Sequence[str]) -> list[str]:
        if not self._ids.keys() >= set(names):
            self._look()
        return [name for name in names if name not in self._ids]

    def _look(self) -> None:
        for name, topic in self._store.topics().items():
            self._names[topic] = name
            self._ids[name] = topic


def as_names(topics: str | Iterable[str]) -> list[str]:
    """Of one topic or several."""
    return [topics] if isinstance(topics, str) else list(topics)
