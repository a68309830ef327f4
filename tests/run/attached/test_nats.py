"""A user's own NATS: with a password, a token, TLS, and certificates of its clients."""

import asyncio
import json
from collections.abc import Iterator

import nats
import pytest

from ackworth.broker.contract import Place
from ackworth.broker.nats_jetstream import BROKER, configuration
from ackworth.broker.ports import HOST
from tests.run.attached.suite import NOBODY, SECRET, WRITTEN, Suite, Theirs, theirs_of, wait_until_up

pytestmark = pytest.mark.real


def secured(theirs: Theirs, place: Place) -> None:
    """With a password and without TLS."""
    told = json.loads(configuration(place, "2m"))
    told["authorization"] = {"users": [{"user": "ann", "password": SECRET}]}
    (place.logs / "nats.conf").write_text(json.dumps(told))


def strict(theirs: Theirs, place: Place) -> None:
    """With a token and TLS, where clients must have a certificate too."""
    told = json.loads(configuration(place, "2m"))
    certificates = theirs.certificates
    told["authorization"] = {"token": SECRET}
    told["tls"] = {
        "cert_file": str(certificates.server),
        "key_file": str(certificates.server_key),
        "ca_file": str(certificates.authority),
        "verify": True,
    }
    (place.logs / "nats.conf").write_text(json.dumps(told))


def streams(theirs: Theirs) -> set[str]:
    async def ask() -> set[str]:
        client = await nats.connect(f"nats://{HOST}:{theirs.ports['client']}", user="ann", password=SECRET)
        try:
            return {info.config.name or "" for info in await client.jetstream().streams_info()}
        finally:
            await client.close()

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    folders = [tmp_path_factory.mktemp(name) for name in ("plain", "tls")]
    with theirs_of(BROKER, folders[0], secured) as found, theirs_of(BROKER, folders[1], strict) as other:
        plain, tls = f"{HOST}:{found.ports['client']}", f"localhost:{other.ports['client']}"
        certificates = other.certificates
        found.links = {
            "plain": f"nats://ann:{WRITTEN}@{plain}",
            "token and certificate": f"natss://{WRITTEN}@{tls}?{certificates.client}",
            "token after a colon": f"natss://:{WRITTEN}@{tls}?{certificates.client}",
        }
        found.wrong = {
            "password": (f"nats://ann:wr0ng@{plain}", "Authorization Violation"),
            "token": (f"natss://wr0ng@{tls}?{certificates.client}", "Authorization Violation"),
            "port": (f"nats://ann:{WRITTEN}@{NOBODY}", "Connection refused"),
            "authority": (f"natss://{WRITTEN}@{tls}", "certificate verify failed"),
            "no certificate": (f"natss://{WRITTEN}@{tls}?{certificates.trusted}", "ertificate"),
            "tls to plain": (f"natss://ann:{WRITTEN}@{plain}", "the server has no TLS"),
            "plain to tls": (f"nats://{WRITTEN}@{tls}", "the server wants TLS"),
        }
        for link in found.links.values():
            wait_until_up(found, link)
        found.left = lambda: streams(found)
        yield found


class TestNats(Suite):
    links = ("token and certificate",)
    version = r"nats-server \d"
    wrong = ("password", "token", "port", "authority", "no certificate", "tls to plain", "plain to tls")
