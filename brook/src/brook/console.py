"""The pages of the console: plain HTML, no scripts; every value that comes from the queue is escaped.

secret: what shows that a form is ours.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from urllib.parse import quote, urlencode

from brook.printing import (
    Row,
    alert_row,
    client_row,
    dead_row,
    delivery_row,
    group_row,
    listener_row,
    message_row,
    shown,
    topic_row,
)
from brook.queue import Brook

Links = Mapping[str, Callable[[Row], str]]  # where a column's cells lead to

PAGES = ("topics", "groups", "clients", "listeners", "alerts", "settings", "metrics")
SECONDS = 60.0
MESSAGES = 50

STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 84rem; padding: 0 1.5rem }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.5rem }
nav a[aria-current] { color: inherit; font-weight: 600; text-decoration: none }
h1 { font-size: 1.6rem; overflow-wrap: anywhere }
h2 { font-size: 1.2rem }
div.wide { overflow-x: auto }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8885; vertical-align: top }
td { max-width: 40rem; overflow-wrap: break-word }
form { display: inline-block; max-width: 100% }
td form { white-space: nowrap }
label { display: inline-block; max-width: 100% }
input, select { max-width: 100%; box-sizing: border-box }
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 1rem }
  thead { display: none }
  table, tbody, tr, td { display: block }
  tr { padding: .5rem 0; border-bottom: 1px solid #8885 }
  td { display: grid; grid-template-columns: 7rem minmax(0, 1fr); padding: .1rem 0; border: 0; overflow-wrap: anywhere }
  td::before { content: attr(data-label); opacity: .7 }
  td.acts { display: block }
  td form { white-space: normal }
}
"""


def page(title: str, *parts: str) -> str:
    """Parts are HTML already; the title is not."""
    here = {title.lower(): ' aria-current="page"'}
    links = "".join(f'<a href="/{name}"{here.get(name, "")}>{name}</a>' for name in PAGES)
    meta = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f"{meta}<title>{escape(title)} - Brook</title>"
    body = f"<nav>{links}</nav><h1>{escape(title)}</h1>{''.join(parts)}"
    return f'<!doctype html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{body}</body></html>'


def topics_page(mq: Brook) -> str:
    rows = [topic_row(state, SECONDS) for state in mq.topic_states(SECONDS)]
    return page("Topics", table(rows, {"topic": lambda row: f"/topic?{urlencode({'name': row['topic']})}"}))


def groups_page(mq: Brook, secret: str) -> str:
    rows = [group_row(state) for state in mq.group_states()]
    links: Links = {"dead": lambda row: f"/dead?{urlencode({'group': row['group']})}"}
    return page("Groups", table(rows, links), _reset_form(rows, secret) if rows else "")


def clients_page(mq: Brook) -> str:
    return page("Clients", table([client_row(state) for state in mq.client_states()]))


def listeners_page(mq: Brook) -> str:
    return page("Listeners", table([listener_row(state) for state in mq.listener_states()]))


def alerts_page(mq: Brook) -> str:
    return page("Alerts", table([alert_row(alert) for alert in mq.alerts()]))


def settings_page(mq: Brook, secret: str) -> str:
    """Each in a field, to be changed."""
    settings = vars(mq.settings)

    def change(row: Row) -> str:
        name, value = row["setting"], json.dumps(settings[row["setting"]])
        field = f'<input name="value" size="40" aria-label="{escape(name)}" value="{escape(value)}">'
        return _form("change", secret, {"name": name}, f"{field} <button>change</button>")

    table_of_all = table([{"setting": name} for name in settings], acts=change)
    return page("Settings", "<p>Values are JSON; an empty field means the default.</p>", table_of_all)


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
    """With a button each to replay and to drop, one or all."""

    def act(row: Row) -> str:
        return _buttons({"group": group, "topic": row["topic"], "offset": str(row["offset"])}, secret, "")

    rows = [dead_row(letter) for letter in mq.dead(group)]
    return page(
        f"Dead letters of {group}", table(rows, acts=act), _buttons({"group": group}, secret, " all") if rows else ""
    )


def table(rows: Sequence[Row], links: Links | None = None, acts: Callable[[Row], str] | None = None) -> str:
    """acts: HTML for the end of a row."""
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th>{_words(name)}</th>" for name in rows[0])
    end = "" if acts is None else "<th></th>"
    body = "".join(f"<tr>{_line(row, links or {}, acts)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}{end}</tr></thead><tbody>{body}</tbody></table></div>'


def _words(column: str) -> str:
    return escape(column.replace("_", " "))


def _line(row: Row, links: Links, acts: Callable[[Row], str] | None) -> str:
    cells = "".join(f'<td data-label="{_words(name)}">{_cell(name, row, links)}</td>' for name in row)
    return cells if acts is None else f'{cells}<td class="acts">{acts(row)}</td>'


def _cell(name: str, row: Row, links: Links) -> str:
    text = escape(shown(name, row[name]))
    return f'<a href="{escape(links[name](row))}">{text}</a>' if name in links else text


def _form(act: str, secret: str, fields: Mapping[str, str], inside: str) -> str:
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in {**fields, "secret": secret}.items()
    )
    return f'<form method="post" action="/{act}">{hidden}{inside}</form>'


def _buttons(fields: Mapping[str, str], secret: str, which: str) -> str:
    """For dead letters."""
    acts = ("replay", "drop")
    return " ".join(_form(act, secret, fields, f"<button>{act}{which}</button>") for act in acts)


def _reset_form(rows: Sequence[Row], secret: str) -> str:
    groups, topics = ({row[name]: None for row in rows} for name in ("group", "topic"))
    inside = (
        f'<label>Group <select name="group">{_options(groups)}</select></label> '
        f'<label>Topic <select name="topic"><option value="">all</option>{_options(topics)}</select></label> '
        '<label>To <input name="to" required placeholder="earliest, latest, an offset or a time" size="32"></label> '
        "<button>reset</button>"
    )
    return f"<h2>Go on from another place</h2>{_form('reset', secret, {}, inside)}"


def _options(names: Iterable[str]) -> str:
    return "".join(f'<option value="{escape(name)}">{escape(name)}</option>' for name in names)


def _trace_link(topic: str, offset: int) -> str:
    return f"/trace?topic={quote(topic, safe='')}&offset={offset}"
