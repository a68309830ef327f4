"""A user's own Kafka: with SASL, with TLS, with both, and with certificates of its clients."""

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from ackworth.broker.contract import Place
from ackworth.broker.kafka import BROKER, configuration
from ackworth.broker.ports import HOST
from ackworth.run.attached import attach
from tests.run.attached.suite import NOBODY, PATIENCE, SECRET, WRITTEN, Suite, Theirs, theirs_of, wait_until_up

pytestmark = pytest.mark.real
LISTENERS = {"sasl": "SASL_PLAINTEXT", "tls": "SSL", "both": "SASL_SSL"}
MODULES = "org.apache.kafka.common.security"


def secured(theirs: Theirs, place: Place) -> None:
    certificates, ports = theirs.certificates, place.ports
    lines = configuration(place, {"flush_messages": "never"}).splitlines()
    told = dict(line.split("=", 1) for line in lines)
    told["listeners"] += "".join(f",{name.upper()}://localhost:{ports[name]}" for name in LISTENERS)
    told["listener.security.protocol.map"] += "".join(f",{name.upper()}:{how}" for name, how in LISTENERS.items())
    store = place.logs / "server.store.pem"
    store.write_text(certificates.server_key.read_text() + certificates.server.read_text())
    for name in ("tls", "both"):
        at = f"listener.name.{name}.ssl"
        told |= {f"{at}.keystore.type": "PEM", f"{at}.keystore.location": str(store)}
        told |= {f"{at}.truststore.type": "PEM", f"{at}.truststore.location": str(certificates.authority)}
    told["listener.name.tls.ssl.client.auth"] = "required"
    for name in ("sasl", "both"):
        at = f"listener.name.{name}"
        told[f"{at}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256"
        told[f"{at}.plain.sasl.jaas.config"] = f'{MODULES}.plain.PlainLoginModule required user_ann="{SECRET}";'
        told[f"{at}.scram-sha-256.sasl.jaas.config"] = f"{MODULES}.scram.ScramLoginModule required;"
    (place.logs / "kafka.properties").write_text("".join(f"{key}={value}\n" for key, value in told.items()))


def admin(theirs: Theirs) -> AdminClient:
    return AdminClient({"bootstrap.servers": f"{HOST}:{theirs.ports['client']}"})


def add_user(theirs: Theirs) -> None:
    """Who is known by SCRAM."""
    how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    upsert = UserScramCredentialUpsertion("bea", how, SECRET.encode())
    client = admin(theirs)
    for done in client.alter_user_scram_credentials([upsert]).values():
        done.result()


def left(theirs: Theirs) -> set[str]:
    client = admin(theirs)
    topics = {name for name in client.list_topics(timeout=PATIENCE).topics if not name.startswith("__")}
    return topics | {group.group_id for group in client.list_consumer_groups().result().valid}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    with theirs_of(BROKER, tmp_path_factory.mktemp("kafka"), secured, *LISTENERS) as found:
        sasl, tls, both = (f"localhost:{found.ports[name]}" for name in LISTENERS)
        certificates = found.certificates
        wait_until_up(found, f"kafka://{HOST}:{found.ports['client']}")
        add_user(found)
        found.links = {
            "sasl": f"kafka://ann:{WRITTEN}@{NOBODY},{sasl}",
            "tls": f"kafkas://{tls}?{certificates.client}",
            "both": f"kafkas://bea:{WRITTEN}@{both}?{certificates.trusted}&sasl=SCRAM-SHA-256",
        }
        found.wrong = {
            "password": (f"kafka://ann:wr0ng@{sasl}", "Authentication failed: Invalid username or password"),
            "scram": (f"kafkas://bea:wr0ng@{both}?{certificates.trusted}&sasl=SCRAM-SHA-256", "Authentication failed"),
            "port": (f"kafka://ann:{WRITTEN}@{NOBODY}", "Connection refused"),
            "authority": (f"kafkas://ann:{WRITTEN}@{both}", "certificate verify failed"),
            "plain to tls": (f"kafka://{tls}", "check the address"),
            "no certificate": (f"kafkas://{tls}?{certificates.trusted}", "certificate"),
        }
        for link in found.links.values():
            wait_until_up(found, link)  # what listens with TLS or SASL takes longer
        found.left = lambda: left(found)
        yield found


class TestKafka(Suite):
    links = ("both",)
    wrong = ("password", "scram", "port", "authority", "no certificate", "plain to tls")
    waited_out = ("port", "no certificate", "plain to tls")
    version = "Kafka, cluster "

    def test_a_certificate_lets_in_too(self, theirs: Theirs) -> None:
        assert attach(theirs.links["tls"], []).version == attach(theirs.first, []).version
