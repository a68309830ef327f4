"""A user's own ActiveMQ: with a login, and with TLS."""

import threading
from collections.abc import Iterator
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
import stomp

from ackworth.broker.activemq import BROKER, configuration
from ackworth.broker.contract import Place
from ackworth.broker.ports import HOST
from tests.run.attached.suite import NOBODY, PATIENCE, SECRET, WRITTEN, Suite, Theirs, theirs_of, wait_until_up

pytestmark = pytest.mark.real


def secured(theirs: Theirs, place: Place) -> None:
    certificates = theirs.certificates
    store = place.logs / "store.p12"
    certificates.as_store(store, "changeit")
    context = f"<sslContext><sslContext keyStore={quoteattr(store.as_uri())} keyStorePassword='changeit'/></sslContext>"
    users = f"<authenticationUser username='ann' password={quoteattr(SECRET)} groups='users'/>"
    login = f"<plugins><simpleAuthenticationPlugin><users>{users}</users></simpleAuthenticationPlugin></plugins>"
    connector = f"<transportConnector name='tls' uri='stomp+ssl://{HOST}:{place.ports['tls']}'/>"
    told = configuration(place, "always")
    told = told.replace("<persistenceAdapter>", f"{login}<persistenceAdapter>")
    told = told.replace("<transportConnectors>", f"{context}<transportConnectors>{connector}")
    (place.logs / "activemq.xml").write_text(told)


class Browser(stomp.ConnectionListener):
    """Hears what lies in queues, until there is no more."""

    def __init__(self) -> None:
        self.queues: set[str] = set()
        self.done = threading.Event()

    def on_message(self, frame: Any) -> None:
        if frame.headers.get("browser") == "end":
            self.done.set()
        else:
            self.queues.add(frame.headers["destination"])


def left(theirs: Theirs) -> set[str]:
    """The queues that are not empty."""
    client, browser = stomp.Connection12([(HOST, theirs.ports["stomp"])]), Browser()
    client.set_listener("", browser)
    client.connect("ann", SECRET, wait=True)
    client.subscribe("/queue/>", "browse", headers={"browser": "true"})
    assert browser.done.wait(PATIENCE)
    client.disconnect()
    return browser.queues


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    with theirs_of(BROKER, tmp_path_factory.mktemp("activemq"), secured, "tls") as found:
        plain, tls = f"{HOST}:{found.ports['stomp']}", f"localhost:{found.ports['tls']}"
        certificates = found.certificates
        found.links = {
            "plain": f"stomp://ann:{WRITTEN}@{plain}",
            "tls": f"stomps://ann:{WRITTEN}@{tls}?{certificates.trusted}",
        }
        found.wrong = {
            "password": (f"stomp://ann:wr0ng@{plain}", "User name [ann] or password is invalid"),
            "port": (f"stomp://ann:{WRITTEN}@{NOBODY}", "Connection refused"),
            "authority": (f"stomps://ann:{WRITTEN}@{tls}", "certificate verify failed"),
            "tls to plain": (f"stomps://ann:{WRITTEN}@{plain}", "check the address"),
            "plain to tls": (f"stomp://ann:{WRITTEN}@{tls}", "check the address"),
        }
        for link in found.links.values():
            wait_until_up(found, link)
        found.left = lambda: left(found)
        yield found


class TestActiveMQ(Suite):
    waited_out = ("tls to plain",)
    hangs_up = ("password",)
    version = r"ActiveMQ \d"
    stays = True
