"""What can go wrong, by whose fault it is.

Every error that a user may meet derives from AckworthError; its message is the one line that the
command prints: what is wrong, where, and what to do.
"""


class AckworthError(Exception):
    """Something that is worth one clear line instead of a traceback."""


class BadInput(AckworthError):
    """The user asked for something that cannot be: the remedy is in the message."""


class BadRecord(AckworthError):
    """A run directory is not ours, not whole, or not readable."""


class Unavailable(AckworthError):
    """This machine cannot do it (no root, no loop device, no Java): the verdict is unknown."""


class BrokerFailed(AckworthError):
    """The broker did not start, did not become ready, or could not be configured."""


class NotReady(BrokerFailed):
    """The broker did not answer in time. It may only be slow: that is no refusal."""
