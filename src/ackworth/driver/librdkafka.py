"""The library under the driver of Kafka: how its clients are made, what its errors mean, what it says of brokers."""

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from ackworth.driver.contract import Address, ConnectionLost
from ackworth.driver.wire import Deadline

BROKE, UNCLEAR = 2, 3  # the driver's reasons
ANSWER_WITHIN = 5.0  # seconds, for what is answered at once
_LOOK_AGAIN = 0.5
_COMMON = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "socket.timeout.ms": 10_000, "log_level": 0}
_FILES = {"ca": "ssl.ca.location", "cert": "ssl.certificate.location", "key": "ssl.key.location"}
_GONE = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
_NOT_LET_IN = (KafkaError._AUTHENTICATION, KafkaError._SSL)


def settings(address: Address) -> dict[str, Any]:
    """What every client of the library is told."""
    tls, user = address.get("tls"), address.get("user")
    found = {**_COMMON, "bootstrap.servers": address["servers"]}
    found["security.protocol"] = f"{'SASL_' if user else ''}{'PLAINTEXT' if tls is None else 'SSL'}"
    if user:
        found |= {"sasl.mechanism": address["sasl"], "sasl.username": user, "sasl.password": address["password"] or ""}
    return found | {_FILES[name]: path for name, path in (tls or {}).items()}


def lost(error: Any) -> ConnectionLost:
    return ConnectionLost(error.str(), BROKE if error.code() in _GONE else UNCLEAR)


class Trouble:
    """What the library says of the brokers, in its own time. That one connection ended may mean nothing."""

    def __init__(self, lives_on: bool) -> None:
        self._lives_on = lives_on  # the library is trusted to find the broker again
        self._error: Any = None
        self.why: Any = None  # the last that it said of a broker
        self.not_let_in = False

    def __call__(self, error: Any) -> None:
        if error.fatal() or (error.code() == KafkaError._ALL_BROKERS_DOWN and not self._lives_on):
            self._error = error
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.why = error
        self.not_let_in |= error.code() in _NOT_LET_IN

    def check(self) -> None:
        if self._error is not None:
            raise lost(self._error)


def made(kind: Callable[[dict[str, Any]], Any], told: Mapping[str, Any], trouble: Trouble) -> Any:
    """A client that knows the cluster. Raises ConnectionLost if no broker answers, or lets us in."""
    try:
        client = kind({**told, "error_cb": trouble})
    except KafkaException as error:  # a file of TLS that cannot be read
        raise lost(error.args[0]) from error
    cluster(client, trouble)
    return client


def cluster(client: Any, trouble: Trouble) -> Any:
    """What the brokers say of the cluster. Raises ConnectionLost."""
    deadline = Deadline(ANSWER_WITHIN)
    while True:
        try:
            return client.list_topics(timeout=_LOOK_AGAIN)
        except KafkaException as error:
            client.poll(0)  # the library tells why
            if trouble.not_let_in or not deadline.left():
                raise lost(trouble.why or error.args[0]) from error


class Admin:
    """Makes and removes what is not messages."""

    def __init__(self, address: Address) -> None:
        self._trouble = Trouble(lives_on=True)
        self.client = made(AdminClient, settings(address), self._trouble)

    def cluster(self) -> Any:
        return cluster(self.client, self._trouble)


def await_all(futures: Mapping[Any, Any], fine: tuple[int, ...] = ()) -> None:
    """Until all is done, or failed in a way that is fine. Raises ConnectionLost."""
    for done in futures.values():
        try:
            done.result()
        except KafkaException as error:
            if error.args[0].code() not in fine:
                raise lost(error.args[0]) from error
