"""What MariaDB and MySQL say, whose error that is, and the remedy."""

from brook.errors import (
    AccessDenied,
    BadMessage,
    BodyTooLarge,
    BrookError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    MissingDatabase,
    StoreFailed,
    Unreachable,
)

# The transaction was rolled back because of others: from the beginning again, it can succeed.
CONFLICTS = frozenset({1213})

# The server is gone, or not part of its cluster: with another connection it can succeed. 0 is PyMySQL's.
LOST = frozenset({0, 1047, 1053, 1927, 2003, 2006, 2013, 2055})

_UNREACHABLE = (Unreachable, "see that it runs, and that the URL names its address")
_DENIED = (AccessDenied, "give the user and password of somebody who may use this database")

_MEANINGS: dict[int, tuple[type[BrookError], str]] = {
    **dict.fromkeys(LOST, _UNREACHABLE),
    2026: (Unreachable, "let it have TLS, or write mysql:// instead of mysqls://"),
    1040: (Unreachable, "let it take more connections (max_connections), or use fewer threads"),
    **dict.fromkeys((1044, 1045, 1142, 1227, 1698), _DENIED),
    1049: (MissingDatabase, "create it, or name another"),
    **dict.fromkeys((1205, 1213), (DatabaseLocked, "end the transaction in the way, or wait longer (patience=...)")),
    **dict.fromkeys((1021, 1114), (DatabaseFull, "free space on its disk and send again")),
    **dict.fromkeys((1036, 1290, 1792, 1836), (DatabaseReadOnly, "name a server that can be written to")),
    1180: (StoreFailed, "its cluster was changing: look whether it was done"),
    1153: (BodyTooLarge, "send less at a time, or set its max_allowed_packet higher"),
    1406: (BadMessage, "use shorter names: a topic's, a group's or a setting's may have 255 characters"),
}


def code_of(error: BaseException) -> int:
    """The server's or the driver's number for it."""
    first = error.args[0] if error.args else 0
    return first if isinstance(first, int) else 0


def not_let_in(error: BaseException, where: str) -> BrookError:
    """Of a connection that was not made. PyMySQL takes whatever is not said as expected for an answer cut short."""
    if code_of(error) not in (0, 2013):
        return translated(error, where)
    kind, remedy = _UNREACHABLE
    return kind(f"{where}: what is there does not answer as MariaDB or MySQL do: {remedy}")


def translated(error: BaseException, where: str) -> BrookError:
    """Of something that was certainly not done: it was rolled back, or never begun."""
    kind, remedy = _MEANINGS.get(code_of(error), (StoreFailed, "see the server's log"))
    text = error.args[1] if len(error.args) > 1 else error
    return kind(f"{where}: {text or 'the connection was lost'}: {remedy}")
