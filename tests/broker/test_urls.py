"""URLs of a user's own broker: taken apart, and never shown with their password."""

from pathlib import Path

import pytest

from ackworth.broker import registry, urls
from ackworth.broker.redis_streams import BROKER
from ackworth.model.errors import BadInput


def test_a_url_is_taken_apart(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.touch()
    address = BROKER.attached(f"rediss://ann:p%40ss@broker.example:7000/3?ca={authority}")
    assert address == {
        "host": "broker.example",
        "port": 7000,
        "user": "ann",
        "password": "p@ss",
        "ca": str(authority),
        "database": 3,
        "tls": True,
    }


def test_what_is_not_said_is_as_usual() -> None:
    address = BROKER.attached("redis://broker.example")
    assert (address["port"], address["password"], address["database"], address["tls"]) == (6379, None, 0, False)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ann:secret@host:1/2", "redis://ann:***@host:1/2"),
        ("redis://:secret@host", "redis://:***@host"),
        ("redis://host:6379", "redis://host:6379"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert urls.parse(url, port=1).shown == shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:secret@", "no host in it"),
        ("redis://ann:secret@host:port", "not a URL"),
        ("redis://ann:secret@host/orders", "the number of a database, not 'orders'"),
        ("redis://ann:secret@host?tls=1", "unknown parameter 'tls': known are ca"),
        ("rediss://ann:secret@host?ca=/no/such.pem", "there is no file /no/such.pem"),
    ],
)
def test_a_wrong_one_is_named_without_its_password(url: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        BROKER.attached(url)
    assert said in str(caught.value) and "secret" not in str(caught.value)


def test_the_scheme_says_which_broker() -> None:
    assert registry.attachable("rediss://host") is BROKER
    with pytest.raises(BadInput, match=r"--attach kafkas://…: no broker is reached so: say one of .*redis://"):
        registry.attachable("kafkas://ann:secret@host")
