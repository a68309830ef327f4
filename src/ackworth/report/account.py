"""The account of a trial: the sum, the picture, a table a group, and where the losses lie."""

from collections.abc import Mapping, Sequence

from ackworth.model.result import Account, GroupAccount, Loss, TrialResult
from ackworth.model.words import counted
from ackworth.report.figures import known
from ackworth.report.markup import Html, join, table, tag
from ackworth.report.pictures import account_picture, loss_strip
from ackworth.report.text import count, fields, seconds

RANGES_SHOWN = 12

_GROUP_ROWS = (
    ("expected", "acked messages that the group must have"),
    ("distinct", "messages that reached it, each counted once"),
    ("lost", "acked, and never delivered"),
    ("recovered", "not answered for certain, and delivered: fine"),
    ("resurrected", "refused, and delivered"),
    ("phantom", "delivered, and never sent"),
    ("foreign", "part of phantom: of another run"),
    ("corrupt", "not what was sent"),
    ("misdelivered", "from a wrong topic, or to a wrong group"),
    ("reordered", "after a later one of the same producer and topic"),
    ("delivered", "all deliveries, repeats too"),
)
_DUPLICATE_ROWS = (
    ("extra", "duplicates", "deliveries beyond the first of a message"),
    ("flagged", "flagged duplicates", "the broker said that it may be a repeat"),
    ("explained", "explained duplicates", "a fault or a consumer's death lies between"),
    ("unexplained", "unexplained duplicates", "nothing that happened explains them"),
)
_NEVER_GOOD = {"lost", "resurrected", "phantom", "corrupt", "misdelivered"}


def account_section(trial: TrialResult) -> Html:
    account = trial["account"]
    return join(
        _equation(account),
        account_picture(account, trial["groups"]),
        _doubt(trial),
        _group_table(trial["groups"]),
        _reasons(account["reasons"]),
    )


def _doubt(trial: TrialResult) -> Html | None:
    """What is missing at the end of a run that could not tell may only not have come yet."""
    if known(trial) or not any(group["lost"] for group in trial["groups"]):
        return None
    return tag("p", "Counted as lost is what had not come by the end. Whether it is lost could not be told.")


def _equation(account: Account) -> Html:
    terms = [f"{count(fields(account)[name])} {name}" for name in ("acked", "refused", "unknown", "unanswered")]
    return tag("p", tag("b", f"{count(account['sent'])} sent"), " = ", " + ".join(terms), class_="equation")


def _group_table(groups: Sequence[GroupAccount]) -> Html | None:
    rows = [[_term(key, means), *(_number(key, fields(g)[key]) for g in groups)] for key, means in _GROUP_ROWS]
    rows += [
        [_term(name, means), *(_number(key, fields(g["duplicates"])[key]) for g in groups)]
        for key, name, means in _DUPLICATE_ROWS
    ]
    head = ["Messages", *(f"Group {group['name']}" for group in groups)]
    return table(head, rows, label="The account of each group", class_="numbers") if groups else None


def _term(name: str, means: str) -> Html:
    return join(name, " ", tag("small", means))


def _number(key: str, number: int) -> Html:
    return tag("span", count(number), class_="quiet" if number == 0 else "bad" if key in _NEVER_GOOD else None)


def _reasons(reasons: Mapping[str, int]) -> Html | None:
    rows = [[reason or "no reason given", count(n)] for reason, n in reasons.items()]
    head = ["Why refused or unknown", "Messages"]
    return table(head, rows, label="Reasons given for refused and unknown sends", class_="numbers") if rows else None


def loss_section(loss: Loss) -> Html:
    """The losses of one group: in words, as a strip, and as ranges."""
    ranges = loss["ranges"][:RANGES_SHOWN]
    listed = [
        tag("code", f"{producer}/{first}" if first == last else f"{producer}/{first}–{last}")
        for producer, first, last in ranges
    ]
    more = loss["ranges_total"] - len(ranges)
    undrawn = loss["ranges_total"] - len(loss["ranges"])
    drawn = f"Drawn are the first {count(len(loss['ranges']))} of {count(loss['ranges_total'])} ranges."
    return join(
        tag("p", _loss_sentence(loss)),
        loss_strip(loss) if ranges else None,
        tag("p", drawn, class_="quiet") if undrawn else None,
        tag("p", *listed, f" and {counted(more, 'more range')}" if more > 0 else None, class_="ids"),
    )


def _loss_sentence(loss: Loss) -> str:
    place = {"all": "all of it", "scattered": "scattered"}.get(loss["place"], f"the {loss['place']}")
    lost, ranges = counted(loss["count"], "acked message"), counted(loss["ranges_total"], "range")
    ids = loss["first"] if loss["first"] == loss["last"] else f"from {loss['first']} to {loss['last']}"
    return (
        f"Group {loss['group']} lost {lost} in {ranges} and {counted(loss['topics'], 'topic')}, "
        f"{ids}: {place} of what was acked{_before_fault(loss)}."
    )


def _before_fault(loss: Loss) -> str:
    if loss["fault"] is None:
        return ""
    if loss["seconds_before_fault"] is None:
        return f" before the {loss['fault']}"
    nearest, farthest = map(seconds, loss["seconds_before_fault"])
    they = "it was" if loss["count"] == 1 else "they were"
    span = nearest if nearest == farthest else f"{nearest} to {farthest}"
    return f" before the {loss['fault']}; {they} acked {span} before it"
