"""A user's own RabbitMQ: with a password, in a virtual host, with TLS, and known by its certificate."""

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from ackworth.broker.contract import Place
from ackworth.broker.ports import HOST
from ackworth.broker.rabbitmq import BROKER, PROGRAM, configuration
from ackworth.broker.server import Server
from tests.run.attached.suite import NOBODY, SECRET, WRITTEN, Suite, Theirs, theirs_of, wait_until_up

pytestmark = pytest.mark.real


def secured(theirs: Theirs, place: Place) -> None:
    certificates = theirs.certificates
    lines = [
        configuration(place).strip(),
        f"listeners.ssl.1 = {HOST}:{place.ports['tls']}",
        f"ssl_options.cacertfile = {certificates.authority}",
        f"ssl_options.certfile = {certificates.server}",
        f"ssl_options.keyfile = {certificates.server_key}",
        "ssl_options.verify = verify_peer",
        "ssl_options.fail_if_no_peer_cert = false",
        "ssl_cert_login_from = common_name",
        "auth_mechanisms.1 = PLAIN",
        "auth_mechanisms.2 = EXTERNAL",
    ]
    (place.logs / "rabbit.conf").write_text("\n".join(lines) + "\n")
    (place.logs / "plugins").write_text("[rabbitmq_auth_mechanism_ssl].\n")
    assert isinstance(theirs.node, Server)
    theirs.node._environment["RABBITMQ_ENABLED_PLUGINS_FILE"] = str(place.logs / "plugins")


def ctl(theirs: Theirs, *words: str) -> str:
    """What an operator says."""
    assert isinstance(theirs.node, Server)
    told = {**os.environ, **theirs.node._environment}
    program = PROGRAM.with_name("rabbitmqctl")
    done = subprocess.run([program, "-q", *words], env=told, capture_output=True, text=True, check=True)
    return done.stdout


# The names of queues and exchanges, asked for at once: each command starts an Erlang of its own.
NAMES = """[element(4, amqqueue:get_name(Queue)) || Queue <- rabbit_amqqueue:list(<<"shop">>)]
    ++ [element(4, element(2, Exchange)) || Exchange <- rabbit_exchange:list(<<"shop">>)]."""


def left(theirs: Theirs) -> set[str]:
    """RabbitMQ shows what a host has only to those who operate it."""
    names = re.findall('<<"(.*?)">>', ctl(theirs, "eval", NAMES))
    assert "amq.direct" in names
    return {name for name in names if name and not name.startswith("amq.")}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    with theirs_of(BROKER, tmp_path_factory.mktemp("rabbitmq"), secured, "tls") as found:
        plain, tls = f"{HOST}:{found.ports['client']}", f"localhost:{found.ports['tls']}"
        certificates = found.certificates
        wait_until_up(found, f"amqp://{plain}")
        ctl(found, "add_vhost", "shop")
        ctl(found, "add_user", "ann", SECRET)
        ctl(found, "set_permissions", "-p", "shop", "ann", ".*", ".*", ".*")
        found.links = {
            "plain": f"amqp://ann:{WRITTEN}@{plain}/shop",
            "tls": f"amqps://ann:{WRITTEN}@{tls}/shop?{certificates.trusted}",
            "certificate": f"amqps://{tls}/shop?{certificates.client}",
        }
        found.wrong = {
            "password": (f"amqp://ann:wr0ng@{plain}/shop", "ACCESS_REFUSED"),
            "virtual host": (f"amqp://ann:{WRITTEN}@{plain}", "access to vhost '/' refused"),
            "port": (f"amqp://ann:{WRITTEN}@{NOBODY}/shop", "Connection refused"),
            "authority": (f"amqps://ann:{WRITTEN}@{tls}/shop", "certificate verify failed"),
            "tls to plain": (f"amqps://ann:{WRITTEN}@{plain}/shop", "check the address"),
            "plain to tls": (f"amqp://ann:{WRITTEN}@{tls}/shop", "check the address"),
        }
        found.left = lambda: left(found)
        yield found


class TestRabbitMQ(Suite):
    links = ("tls", "certificate")
    wrong = ("password", "virtual host", "port", "authority", "tls to plain", "plain to tls")
    version = r"RabbitMQ \d"
