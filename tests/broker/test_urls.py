"""URLs of a user's own broker: of one form for every kind, taken apart, and never shown with what is secret in them."""

from pathlib import Path
from typing import Any

import pytest

from ackworth.broker import registry, urls
from ackworth.broker.contract import Attachable
from ackworth.broker.redis_streams import BROKER
from ackworth.model.errors import BadInput

SETTINGS = registry.settle(BROKER, {})


def attached(url: str) -> dict[str, Any]:
    return BROKER.attached(url, SETTINGS, "ackworth")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    found = {name: tmp_path / f"{name}.pem" for name in ("ca", "cert", "key")}
    for path in found.values():
        path.touch()
    return {name: str(path) for name, path in found.items()}


def test_a_url_is_taken_apart(files: dict[str, str]) -> None:
    options = "&".join(f"{name}={path}" for name, path in files.items())
    assert attached(f"rediss://ann:p%40ss@broker.example:7000/3?{options}") == {
        "host": "broker.example",
        "port": 7000,
        "user": "ann",
        "password": "p@ss",
        "tls": files,
        "database": 3,
    }


def test_what_is_not_said_is_as_usual() -> None:
    assert attached("redis://broker.example") == {
        "host": "broker.example",
        "port": 6379,
        "user": None,
        "password": None,
        "tls": None,
        "database": 0,
    }
    assert attached("rediss://broker.example")["tls"] == {}


def test_a_kind_may_take_several_hosts_and_options_of_its_own() -> None:
    url = "kafka://ann:secret@one.example,[::1]:7000?sasl=PLAIN"
    found = urls.parse(url, {"kafka": 9092, "kafkas": 9093}, ["sasl"], several=True)
    assert found.hosts == (("one.example", 9092), ("::1", 7000)) and found.options == {"sasl": "PLAIN"}
    assert "secret" not in repr(found)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://ann:secret@host:1/2", "redis://ann:***@host:1/2"),
        ("redis://:secret@host", "redis://:***@host"),
        ("nats://secret@host", "nats://***@host"),
        ("redis://host:6379?ca=secret", "redis://host:6379"),
    ],
)
def test_what_is_secret_is_not_shown(url: str, shown: str) -> None:
    assert urls.show(url) == shown


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:secret@", "no host in it"),
        ("redis://ann:secret@host:port", "its host, port or options cannot be read"),
        ("redis://ann:secret@a..b", "its host, port or options cannot be read"),
        ("redis://ann:1/secret@host", "in a password, write / as %2F"),
        ("redis://ann:1#secret@host", "in a password, write / as %2F"),
        ("redis://[ann:secret@host", "not a URL"),
        ("redis://ann:secret@host,other", "names 2 hosts: name one"),
        ("redis://ann:secret@host/orders", "the number of a database, not 'orders'"),
        ("redis://ann:secret@host?tls=1", "unknown option 'tls': known are ca, cert, key"),
        ("redis://ann:secret@host?ca=/no/such.pem", "'ca' is for TLS: write rediss://…"),
        ("rediss://ann:secret@host?ca=/no/such.pem", "there is no file /no/such.pem: name the certificate of the auth"),
        ("rediss://ann:secret@host?key=/dev/null", "there is no file /dev/null: name the key of your certificate"),
    ],
)
def test_a_wrong_one_is_named_without_its_password(url: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        attached(url)
    assert said in str(caught.value) and "secret" not in str(caught.value)


def test_a_key_alone_is_of_no_use(files: dict[str, str]) -> None:
    with pytest.raises(BadInput, match="a key without its certificate"):
        attached(f"rediss://host?key={files['key']}")


def test_every_kind_can_be_attached_to_by_its_scheme() -> None:
    ours = [broker for broker in registry.brokers().values() if type(broker).__module__.startswith("ackworth.broker.")]
    assert len(ours) >= 7
    for broker in ours:
        assert isinstance(broker, Attachable), broker.name
        assert all(registry.attachable(f"{scheme}://host") is broker for scheme in broker.schemes)
    with pytest.raises(BadInput, match=r"--attach pigeon://…: no broker is reached so: begin with one of .*redis://"):
        registry.attachable("pigeon://ann:secret@host")
    with pytest.raises(BadInput, match=r"^--attach: no broker is reached so: begin with one of"):
        registry.attachable("redis:s3cret@host")
