"""The command line: `brook --url sqlite:///orders.db lag`, or with the URL in BROOK_URL.

Every command prints a table, or JSON with --json. Errors are one line; exit code 1, and 2 for a wrong command line.
"""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, get_args

from brook.entering import json_value, position, time
from brook.errors import BadSetting, BadUrl, BrookError
from brook.model import Message, Rule
from brook.printing import (
    Row,
    alert_row,
    as_json,
    as_table,
    client_row,
    dead_row,
    delivery_row,
    group_row,
    lag_row,
    listener_row,
    message_row,
    topic_row,
)
from brook.queue import Brook
from brook.serving import Server

Options = argparse.Namespace
Command = Callable[[Brook, Options], Sequence[Row]]
Entered = TypeVar("Entered")

_MEANS = {
    "topic": "the name of a topic",
    "group": "the name of a group",
    "rule": "read-write, write-only, read-only or closed",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with _open(options.url) as mq:
            rows = options.run(mq, options)
            _say(as_json(rows) if options.json else as_table(rows))
    except BrookError as error:
        sys.stderr.write(f"brook: {error}\n")
        return 1
    except (KeyboardInterrupt, BrokenPipeError):
        return 130
    return 0


def topics(mq: Brook, options: Options) -> Sequence[Row]:
    return [topic_row(state, options.seconds) for state in mq.topic_states(options.seconds)]


def groups(mq: Brook, options: Options) -> Sequence[Row]:
    return [group_row(state) for state in mq.group_states()]


def clients(mq: Brook, options: Options) -> Sequence[Row]:
    return [client_row(state) for state in mq.client_states()]


def listeners(mq: Brook, options: Options) -> Sequence[Row]:
    return [listener_row(state) for state in mq.listener_states()]


def alerts(mq: Brook, options: Options) -> Sequence[Row]:
    return [alert_row(alert) for alert in mq.alerts(options.limit)]


def lag(mq: Brook, options: Options) -> Sequence[Row]:
    """Of groups, of their clients, which is what they have in flight, and of listeners, which are of no group."""
    names = [options.group] if options.group else sorted({state.group for state in mq.group_states()})
    rows = [lag_row(name, None, mq.lag(name)) for name in names]
    rows += [lag_row(state.group, state.client, state.claimed) for state in mq.client_states() if state.group in names]
    if not options.group:
        rows += [lag_row(None, state.client, state.lag) for state in mq.listener_states()]
    return rows


def tail(mq: Brook, options: Options) -> Sequence[Row]:
    last = mq.tail(options.topic, options.last)
    if not options.follow:
        return _rows(last)
    following = mq.listen(options.topic, start=last[-1].offset + 1 if last else "latest")
    for message in last:
        _say(json.dumps(message_row(message), ensure_ascii=False))
    while True:
        batch = following.receive(wait=1.0)
        for message in batch.messages:
            _say(json.dumps(message_row(message), ensure_ascii=False))
        following.done(batch)


def query(mq: Brook, options: Options) -> Sequence[Row]:
    if options.offset is not None:
        found = mq.get(options.topic, options.offset)
        return _rows([found] if found else [])
    wanted = {name: getattr(options, name) for name in ("key", "tag", "since", "until", "first", "limit")}
    return _rows(mq.query(options.topic, **wanted))


def replay(mq: Brook, options: Options) -> Sequence[Row]:
    mq.reset(options.group, options.to, options.topic or None)
    return [group_row(state) for state in mq.group_states() if state.group == options.group]


def dead(mq: Brook, options: Options) -> Sequence[Row]:
    chosen = mq.dead(options.group, options.limit, topic=options.topic, offset=options.offset)
    if options.replay:
        mq.replay_dead(options.group, chosen)
    elif options.drop:
        mq.drop_dead(options.group, chosen)
    return [dead_row(letter) for letter in chosen]


def trace(mq: Brook, options: Options) -> Sequence[Row]:
    found = mq.trace(options.topic, options.offset)
    rows: list[Row] = [{"event": "sent", "at": found.sent, "who": found.sender, "thread": found.thread, "text": ""}]
    for delivery in found.deliveries:
        text = f"group {delivery.group}, attempt {delivery.attempts}: {delivery.outcome} {delivery.cause}".rstrip()
        who = {"who": delivery.client, "thread": delivery.thread}
        rows.append({"event": "delivered", "at": delivery.claimed, **who, "text": text})
    if options.json:
        deliveries = [delivery_row(each) for each in found.deliveries]
        return [{"sent": rows[0], "deliveries": deliveries, "standing": found.standing}]
    standing = [f"{group}: {what}" for group, what in found.standing.items()]
    return [*rows, *({"event": "standing", "at": None, "who": None, "thread": None, "text": each} for each in standing)]


def clean(mq: Brook, options: Options) -> Sequence[Row]:
    cleaned = mq.clean(keep_seconds=options.keep_seconds, keep_bytes=options.keep_bytes)
    return [{"topic": topic, "deleted": messages} for topic, messages in cleaned.items()]


def settings(mq: Brook, options: Options) -> Sequence[Row]:
    if options.value is not None:
        mq.set(options.name, json_value(options.value))
    known = vars(mq.settings)
    if options.name is not None and options.name not in known:
        raise BadSetting(f"{options.name}: no such setting: there are {', '.join(known)}")
    return [{"setting": name, "value": value} for name, value in known.items() if options.name in (None, name)]


def rule(mq: Brook, options: Options) -> Sequence[Row]:
    mq.set_rule(options.topic, options.rule)
    return [{"topic": name, "rule": each} for name, each in mq.rules().items()]


def serve(mq: Brook, options: Options) -> Sequence[Row]:
    with Server(mq, options.host, options.port, options.token) as server:
        _say(f"the console is at {server.address}")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return []


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="brook",
        description=__doc__.splitlines()[0] if __doc__ else None,
        epilog="exit codes: 0 done, 1 an error, 2 a wrong command line",
    )
    parser.add_argument("--url", default=os.environ.get("BROOK_URL"), help="of the queue; or in BROOK_URL")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(run: Command, text: str, *names: str) -> argparse.ArgumentParser:
        command = commands.add_parser(run.__name__, help=text, description=text)
        command.add_argument("--json", action="store_true", help="for programs")
        command.set_defaults(run=run)
        for name in names:
            command.add_argument(name, help=_MEANS[name])
        return command

    ranking = add(topics, "all topics, the busiest first")
    ranking.add_argument("--seconds", type=float, default=60.0, help="that the rate is for (60)")
    add(groups, "how far each group is, in each of its topics")
    add(clients, "who consumes, and what each has in flight")
    add(listeners, "who listens, and how far each is in each of its topics")
    told = add(alerts, "slow handlers, time-outs, dead letters and lost leases, the newest first")
    told.add_argument("--limit", type=int, default=100, help="so many (100)")
    add(lag, "messages that a group, a client of it, or a listener is not done with").add_argument(
        "group", nargs="?", help="this one; all by default"
    )
    last = add(tail, "the last messages of a topic", "topic")
    last.add_argument("-n", "--last", type=int, default=10, help="how many (10)")
    last.add_argument("-f", "--follow", action="store_true", help="go on with what is sent, a JSON line each")
    search = add(query, "messages by offset, key, tag or time", "topic")
    search.add_argument("--offset", type=int, help="this one")
    search.add_argument("--key", help="with this key")
    search.add_argument("--tag", help="with this tag")
    search.add_argument("--since", type=_typed(time), help="sent then or later: 2026-01-31T12:00")
    search.add_argument("--until", type=_typed(time), help="sent before")
    search.add_argument("--first", type=int, default=0, help="from this offset on")
    search.add_argument("--limit", type=int, default=100, help="so many (100)")
    again = add(replay, "let a group go on from another place", "group")
    again.add_argument("--to", type=_typed(position), required=True, help="earliest, latest, an offset or a time")
    again.add_argument("--topic", action="append", help="in this topic alone; may be repeated")
    letters = add(dead, "the dead letters of a group, to be listed, replayed or dropped", "group")
    letters.add_argument("--topic", help="of this topic alone")
    letters.add_argument("--offset", type=int, help="this one alone")
    letters.add_argument("--limit", type=int, default=1000, help="so many (1000)")
    either = letters.add_mutually_exclusive_group()
    either.add_argument("--replay", action="store_true", help="let the group have them again")
    either.add_argument("--drop", action="store_true", help="forget them")
    add(trace, "what became of a message", "topic").add_argument("offset", type=int, help="its place in the topic")
    retention = add(clean, "delete what is too old or too much")
    retention.add_argument("--keep-seconds", type=float, help="instead of the setting keep_seconds")
    retention.add_argument("--keep-bytes", type=int, help="of each topic, instead of the setting keep_bytes")
    change = add(settings, "the settings, and how to change one")
    change.add_argument("name", nargs="?", help="this one alone")
    change.add_argument("value", nargs="?", help="that it is to have, as JSON; null: the default")
    console = add(serve, "a web console, on this machine alone and with a token unless told otherwise")
    console.add_argument("--host", default="127.0.0.1", help="to listen on (127.0.0.1)")
    console.add_argument("--port", type=int, default=8700, help="to listen on (8700)")
    console.add_argument("--token", help="that a browser has to bring; a new one by default")
    use = add(rule, "say what a topic may be used for", "topic")
    use.add_argument("rule", help=f"one of {', '.join(get_args(Rule))}")
    return parser


def _open(url: str | None) -> Brook:
    if not url:
        raise BadUrl("no queue is named: give --url sqlite:///orders.db, or set BROOK_URL")
    return Brook(url, create=False)


def _rows(messages: Iterable[Message]) -> list[Row]:
    return [message_row(message) for message in messages]


def _typed(read: Callable[[str], Entered]) -> Callable[[str], Entered]:
    """What it does not like is a wrong command line."""

    def read_argument(text: str) -> Entered:
        try:
            return read(text)
        except BadSetting as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read_argument


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
