"""Redis as a broker: what it is told, what it claims, and that it comes back with what it kept."""

from pathlib import Path

import pytest
import redis

from ackworth.broker.contract import Installable, Place
from ackworth.broker.redis_streams import BROKER, RedisStreams, configuration
from ackworth.model.errors import BrokerFailed
from ackworth.testing.nodes import running


def test_it_is_told_where_and_how(tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" name'
    said = configuration(Place(data=odd, logs=odd, ports={"client": 20_001}), "always").splitlines()
    assert said[:2] == ["bind 127.0.0.1", "port 20001"]
    assert said[2] == f'dir "{tmp_path}/a \\"quoted\\" name"'
    assert said[3:] == ["appendonly yes", "appendfsync always", 'save ""']


@pytest.mark.parametrize(("appendonly", "survives"), [("always", True), ("everysec", False), ("off", False)])
def test_only_always_claims_to_survive_a_power_cut(appendonly: str, survives: bool) -> None:
    claims = BROKER.claims({"appendonly": appendonly}).survives
    assert ("power-cut" in claims) == ("kill" in claims) == survives
    assert "sigterm" in claims


def test_one_that_is_missing_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ackworth.broker.redis_streams.PROGRAM", "no-such-redis")
    assert BROKER.missing() == "no-such-redis is not installed: run `ackworth brokers install redis-streams`"
    assert isinstance(BROKER, Installable)


@pytest.mark.real
@pytest.mark.parametrize("appendonly", ["always", "everysec", "off"])
def test_what_it_was_told_is_how_it_is(tmp_path: Path, redis_streams: RedisStreams, appendonly: str) -> None:
    with running(redis_streams, tmp_path, appendonly=appendonly) as found, redis.Redis(**found.address) as client:
        told = {k: client.config_get(k)[k] for k in ("appendonly", "appendfsync", "save", "bind", "dir")}
        assert told["appendonly"] == ("no" if appendonly == "off" else "yes")
        assert told["save"] == ("3600 1 300 100 60 10000" if appendonly == "off" else "")
        assert appendonly in ("off", told["appendfsync"])
        assert (told["bind"], told["dir"]) == ("127.0.0.1", str(found.place.data))
        assert f"Redis {client.info()['redis_version']}" == redis_streams.version()


@pytest.mark.real
@pytest.mark.parametrize("appendonly", ["always", "everysec", "off"])
def test_an_orderly_stop_keeps_everything(tmp_path: Path, redis_streams: RedisStreams, appendonly: str) -> None:
    with running(redis_streams, tmp_path, appendonly=appendonly) as found:
        with redis.Redis(**found.address) as client:
            client.xadd("topic", {"b": "body"})
        found.node.stop()
        found.node.start()
        found.wait_until_ready()
        with redis.Redis(**found.address) as client:
            assert [fields for _, fields in client.xrange("topic")] == [{b"b": b"body"}]


@pytest.mark.real
def test_a_file_that_is_damaged_is_a_refusal_to_start_with_its_words(
    tmp_path: Path, redis_streams: RedisStreams
) -> None:
    with running(redis_streams, tmp_path, appendonly="always") as found:
        with redis.Redis(**found.address) as client:
            for _ in range(100):
                client.xadd("topic", {"b": "body"})
        found.node.stop()
        [file] = found.place.data.glob("appendonlydir/*.incr.aof")
        text = file.read_bytes()
        file.write_bytes(text[:500] + b"\0" * 100 + text[600:])
        found.node.start()
        with pytest.raises(BrokerFailed, match="Bad file format reading the append only file"):
            found.wait_until_ready()
