"""Brook: a stream queue inside your SQL database."""

from brook.aio import AsyncBrook, AsyncListener
from brook.alerts import Alert
from brook.broadcast import Listener
from brook.consumer import Consumer
from brook.errors import (
    AccessDenied,
    BadMessage,
    BadSetting,
    BadUrl,
    BodyTooLarge,
    BrookError,
    Closed,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    Forbidden,
    LeaseLost,
    MissingDatabase,
    MissingDirectory,
    MissingDriver,
    NoQueue,
    NotADatabase,
    NotDurable,
    Refused,
    SchemaTooNew,
    StoreFailed,
    UnknownGroup,
    UnknownTopic,
    Unreachable,
)
from brook.model import Batch, DeadLetter, Message, MessageId, Outgoing, Refusal
from brook.packing import Piece, Run
from brook.queue import Brook
from brook.retrying import LADDER
from brook.settings import Settings
from brook.states import ClientState, Delivery, GroupState, ListenerState, TopicState, Trace
from brook.transaction import Transaction

__all__ = [
    "LADDER",
    "AccessDenied",
    "Alert",
    "AsyncBrook",
    "AsyncListener",
    "BadMessage",
    "BadSetting",
    "BadUrl",
    "Batch",
    "BodyTooLarge",
    "Brook",
    "BrookError",
    "ClientState",
    "Closed",
    "Consumer",
    "DatabaseFull",
    "DatabaseLocked",
    "DatabaseReadOnly",
    "DeadLetter",
    "Delivery",
    "Forbidden",
    "GroupState",
    "LeaseLost",
    "Listener",
    "ListenerState",
    "Message",
    "MessageId",
    "MissingDatabase",
    "MissingDirectory",
    "MissingDriver",
    "NoQueue",
    "NotADatabase",
    "NotDurable",
    "Outgoing",
    "Piece",
    "Refusal",
    "Refused",
    "Run",
    "SchemaTooNew",
    "Settings",
    "StoreFailed",
    "TopicState",
    "Trace",
    "Transaction",
    "UnknownGroup",
    "UnknownTopic",
    "Unreachable",
]
