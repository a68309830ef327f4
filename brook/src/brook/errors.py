"""What can go wrong, and whether anything was stored.

Every error derives from BrookError and carries the offending value and the remedy in one line.
`Refused` is definite: nothing was stored, nothing changed. After any other error of a send, such as
`StoreFailed`, the messages may or may not be stored.
"""


class BrookError(Exception):
    """Whatever Brook raises."""


class Refused(BrookError):
    """Definitely not done: nothing was stored and nothing changed."""


class StoreFailed(BrookError):
    """The database failed midway: what was asked for may or may not have been done."""


class LeaseLost(BrookError):
    """The lease ran out before the ack, and some of the messages are another client's now."""


class BadUrl(Refused):
    """The URL names no store."""


class NoQueue(BadUrl):
    """There is no queue, and none was to be created. `server` is what would hold it."""

    def __init__(self, text: str, server: str) -> None:
        super().__init__(text)
        self.server = server


class BadSetting(Refused):
    """An option has a value that means nothing."""


class MissingDirectory(Refused):
    """The directory that is to hold the database is not there."""


class NotADatabase(Refused):
    """The file is no SQLite database, or is damaged."""


class SchemaTooNew(Refused):
    """The database was made by a later version of Brook."""


class DatabaseLocked(Refused):
    """Somebody else held the database's write lock for longer than we are willing to wait."""


class DatabaseFull(Refused):
    """No room is left for the messages."""


class DatabaseReadOnly(Refused):
    """The database cannot be written to."""


class BodyTooLarge(Refused):
    """A body is larger than the limit."""


class BadMessage(Refused):
    """What is to be sent does not fit together."""


class UnknownTopic(Refused):
    """No topic of this name, and topics are not created on the fly."""


class Forbidden(Refused):
    """The topic's rule does not allow this."""


class UnknownGroup(Refused):
    """Nobody has subscribed this group."""


class Closed(Refused):
    """The queue was closed, or belongs to the process that this one was forked from."""


class MissingDriver(Refused):
    """The package that speaks to this kind of database is not installed."""


class Unreachable(Refused):
    """No server answers, or none that can be written to."""


class AccessDenied(Refused):
    """The server does not let this user in, or not do this."""


class MissingDatabase(Refused):
    """The server has no database of this name."""


class NotDurable(Refused):
    """The server keeps less of what is committed than was asked for."""
