"""What became of a send.

There are four outcomes, three of which are rows of the record; the fourth, unanswered, is the
absence of a row. Which error of a broker is definite (refused) is a table in its driver; whatever
is not in that table is unknown.
"""

from enum import IntEnum, IntFlag


class Outcome(IntEnum):
    ACKED = 1  # the broker said yes
    REFUSED = 2  # the broker said no, definitely: the message must never be delivered
    UNKNOWN = 3  # connection lost, timed out: it may or may not be stored


class Delivery(IntFlag):
    """What is known of one delivered body, as bits of `delivered.flags`."""

    INTACT = 1  # every byte is as it was sent
    REDELIVERED = 2  # the broker said that this may be a repeat
    FOREIGN = 4  # intact, but of another run
    MISDELIVERED = 8  # came from another topic than the one it was sent to
    REFUSED = 16  # the consumer said no to it, to have it again
