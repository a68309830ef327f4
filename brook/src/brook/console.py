"""The pages of the console: plain HTML, no scripts; every value that comes from the queue is escaped."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from urllib.parse import quote, urlencode

from brook.printing import Row, client_row, dead_row, delivery_row, group_row, message_row, shown, topic_row
from brook.queue import Brook

Links = Mapping[str, Callable[[Row], str]]  # where a column's cells lead to

SECONDS = 60.0
MESSAGES = 50

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem; color-scheme: light dark }
nav a { margin-right: 1.5rem }
div.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0 }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8885; vertical-align: top }
td { max-width: 40rem; overflow-wrap: anywhere }
"""


def page(title: str, *parts: str) -> str:
    """Parts are HTML already; the title is not."""
    links = "".join(f'<a href="/{name}">{name}</a>' for name in ("topics", "groups", "clients", "metrics"))
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{meta}<title>{escape(title)} - Brook</title>"
    body = f"<nav>{links}</nav><h1>{escape(title)}</h1>{''.join(parts)}"
    return f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{body}</body></html>'


def topics_page(mq: Brook) -> str:
    rows = [topic_row(state, SECONDS) for state in mq.topic_states(SECONDS)]
    return page("Topics", table(rows, {"topic": lambda row: f"/topic?{urlencode({'name': row['topic']})}"}))


def groups_page(mq: Brook) -> str:
    rows = [group_row(state) for state in mq.group_states()]
    return page("Groups", table(rows, {"dead": lambda row: f"/dead?{urlencode({'group': row['group']})}"}))


def clients_page(mq: Brook) -> str:
    return page("Clients", table([client_row(state) for state in mq.client_states()]))


def topic_page(mq: Brook, name: str, key: str, tag: str) -> str:
    """The last messages, or those with a key or a tag."""
    if key or tag:
        found = mq.query(name, key=key or None, tag=tag or None, limit=MESSAGES)
    else:
        found = mq.tail(name, MESSAGES)[::-1]
    rows = [message_row(message) for message in found]
    form = (
        f'<form action="/topic"><input type="hidden" name="name" value="{escape(name)}">'
        f'<label>Key <input name="key" value="{escape(key)}"></label> '
        f'<label>Tag <input name="tag" value="{escape(tag)}"></label> <button>Find</button></form>'
    )
    return page(f"Topic {name}", form, table(rows, {"offset": lambda row: _trace_link(name, row["offset"])}))


def trace_page(mq: Brook, topic: str, offset: int) -> str:
    found = mq.trace(topic, offset)
    sent: Row = {"sent_at": found.sent, "sender": found.sender, "thread": found.thread}
    standing = [{"group": group, "standing": what} for group, what in found.standing.items()]
    deliveries = [delivery_row(delivery) for delivery in found.deliveries]
    heading = "<h2>Deliveries</h2>", "<h2>Groups</h2>"
    return page(f"Message {topic}/{offset}", table([sent]), heading[0], table(deliveries), heading[1], table(standing))


def dead_page(mq: Brook, group: str, secret: str) -> str:
    """With a button each to replay and to drop; secret: what shows that a form is ours."""
    rows = [dead_row(letter) for letter in mq.dead(group)]
    forms = "".join(
        f'<form method="post" action="/{act}"><input type="hidden" name="group" value="{escape(group)}">'
        f'<input type="hidden" name="secret" value="{escape(secret)}"><button>{act} all</button></form>'
        for act in ("replay", "drop")
    )
    return page(f"Dead letters of {group}", table(rows), forms if rows else "")


def table(rows: Sequence[Row], links: Links | None = None) -> str:
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in rows[0])
    lines = ["".join(f"<td>{_cell(name, row, links or {})}</td>" for name in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(name: str, row: Row, links: Links) -> str:
    text = escape(shown(name, row[name]))
    return f'<a href="{escape(links[name](row))}">{text}</a>' if name in links else text


def _trace_link(topic: str, offset: int) -> str:
    return f"/trace?topic={quote(topic, safe='')}&offset={offset}"
