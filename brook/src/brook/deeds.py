"""What the console's forms do. Each returns the page to go on with."""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlencode

from brook.entering import json_value, position
from brook.model import DeadLetter, MessageId
from brook.queue import Brook

Fields = Mapping[str, str]
Letters = Sequence[DeadLetter | MessageId]

# So many dead letters go into one transaction.
STEP = 1000


def replay(mq: Brook, fields: Fields) -> str:
    return _with_letters(mq, fields, mq.replay_dead)


def drop(mq: Brook, fields: Fields) -> str:
    return _with_letters(mq, fields, mq.drop_dead)


def reset(mq: Brook, fields: Fields) -> str:
    """In the topic that the form names, or in all."""
    mq.reset(fields["group"], position(fields["to"]), [fields["topic"]] if fields["topic"] else None)
    return "/groups"


def change(mq: Brook, fields: Fields) -> str:
    """Nothing: back to the default."""
    mq.set(fields["name"], json_value(fields["value"] or "null"))
    return "/settings"


def _with_letters(mq: Brook, fields: Fields, act: Callable[[str, Letters], int]) -> str:
    """The one that the form names, or all that there are now: what dies meanwhile is not asked for."""
    group = fields["group"]
    named = "offset" in fields
    letters: Letters = [MessageId(fields["topic"], int(fields["offset"]))] if named else _all_dead(mq, group)
    for begin in range(0, len(letters), STEP):
        act(group, letters[begin : begin + STEP])
    return f"/dead?{urlencode({'group': group})}"


def _all_dead(mq: Brook, group: str) -> list[DeadLetter]:
    return mq.dead(group, sum(state.dead for state in mq.group_states() if state.group == group))


DEEDS: Mapping[str, Callable[[Brook, Fields], str]] = {
    "/replay": replay,
    "/drop": drop,
    "/reset": reset,
    "/change": change,
}
