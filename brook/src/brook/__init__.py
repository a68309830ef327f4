"""Brook: a stream queue inside your SQL database."""

from brook.errors import (
    BadMessage,
    BadSetting,
    BadUrl,
    BodyTooLarge,
    BrookError,
    Closed,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    LeaseLost,
    MissingDirectory,
    NotADatabase,
    Refused,
    SchemaTooNew,
    StoreFailed,
    UnknownGroup,
    UnknownTopic,
)
from brook.model import Batch, Message, MessageId, Outgoing
from brook.packing import Piece, Run
from brook.queue import Brook

__all__ = [
    "BadMessage",
    "BadSetting",
    "BadUrl",
    "Batch",
    "BodyTooLarge",
    "Brook",
    "BrookError",
    "Closed",
    "DatabaseFull",
    "DatabaseLocked",
    "DatabaseReadOnly",
    "LeaseLost",
    "Message",
    "MessageId",
    "MissingDirectory",
    "NotADatabase",
    "Outgoing",
    "Piece",
    "Refused",
    "Run",
    "SchemaTooNew",
    "StoreFailed",
    "UnknownGroup",
    "UnknownTopic",
]
