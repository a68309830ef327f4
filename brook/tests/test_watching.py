"""States, traces, metrics and alerts, as an application sees them."""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from brook import Alert, BadSetting, Brook, Message, Refusal, StoreFailed
from brook.alerts import WAITING, Alerts


def test_the_busiest_topic_comes_first(mq: Brook, clock: Any) -> None:
    mq.append(["old"] * 5 + ["empty"], [b"x"] * 6)
    clock.now += 100
    mq.append(["busy"] * 3 + ["calm"], [b"x"] * 4)
    states = mq.topic_states(seconds=60)
    assert [(state.topic, state.recent, state.sent) for state in states] == [
        ("busy", 3, 3),
        ("calm", 1, 1),
        ("old", 0, 5),
        ("empty", 0, 1),
    ]
    assert Brook.topic_states(mq, 1000)[0].topic == "old"


def test_what_dies_with_its_clients_is_an_alert(mq: Brook, url: str, clock: Any) -> None:
    bill = mq.consumer("t", group="g", threads=0, ladder=[])(lambda messages: None)
    mq.append(["t"] * 2, [b"x"] * 2)
    with Brook(url, clock=clock) as other:
        assert len(other.receive("g")) == 2
    assert not bill.step()
    (alert,) = mq.alerts()
    assert (alert.kind, alert.text) == ("dead", "2 messages are dead: handed out and never acked")
    assert len(mq.dead("g")) == 2


def test_a_batch_is_lost_once(mq: Brook, url: str, clock: Any) -> None:
    """However often its lease is renewed for nothing, and though its ack is too."""
    with Brook(url, clock=clock) as other:

        @mq.consumer("t", group="g", threads=0)
        def stand_still(messages: list[Message]) -> None:
            clock.now += 60
            assert len(other.receive("g")) == 1
            for _ in range(3):
                stand_still.tend()

        mq.send("t", b"x")
        assert stand_still.step()
    assert [alert.kind for alert in mq.alerts()] == ["lost"]


def test_an_empty_queue_can_be_watched(mq: Brook) -> None:
    assert (mq.topic_states(), mq.group_states(), mq.client_states()) == ([], [], [])
    mq.create_topics(["t"])
    mq.subscribe("g")
    assert mq.topic_states()[0].stored == 0
    assert mq.group_states()[0].lag == 0


def test_the_trace_of_a_message(mq: Brook, clock: Any) -> None:
    @mq.consumer("t", group="g", threads=0, ladder=[10])
    def twice(messages: list[Message]) -> Refusal | None:
        clock.now += 1
        return Refusal("busy") if messages[0].attempts == 1 else None

    sender = threading.Thread(target=lambda: mq.send("t", b"x"), name="till-3")
    sender.start()
    sender.join()
    twice.step()
    clock.now += 10
    twice.step()
    trace = mq.trace("t", 0)
    assert (trace.sent, trace.thread, trace.standing) == (1000.0, "till-3", {"g": "done"})
    assert trace.sender is not None and trace.sender.endswith(f"/{os.getpid()}")
    assert [(d.claimed, d.ended, d.outcome, d.cause, d.thread) for d in trace.deliveries] == [
        (1000.0, 1001.0, "refused", "busy", "MainThread"),
        (1011.0, 1012.0, "acked", "", "MainThread"),
    ]
    assert {d.client for d in trace.deliveries} == {mq.client}
    assert mq.trace("t", 7).sent is None


def test_threads_that_were_committed_together_are_told_apart(url: str) -> None:
    with Brook(url, durability="off") as mq:

        def send(name: str) -> None:
            for _ in range(20):
                mq.send("t", name.encode())

        threads = [threading.Thread(target=send, args=(f"till-{n}",), name=f"till-{n}") for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for message in mq.query("t", limit=1000):
            assert mq.trace("t", message.offset).thread == message.body.decode()


def test_traces_go_with_their_messages(mq: Brook) -> None:
    mq.subscribe("g")
    mq.send("t", b"x")
    mq.ack(mq.receive("g"))
    mq.clean(keep_bytes=0)
    assert (mq.trace("t", 0).sent, mq.trace("t", 0).deliveries) == (None, ())


def test_metrics(mq: Brook) -> None:
    mq.send('odd"\\\n', b"1234")
    mq.subscribe("g")
    mq.receive("g")
    lines = mq.metrics().splitlines()
    assert 'brook_topic_sent_total{topic="odd\\"\\\\\\n"} 1' in lines
    assert 'brook_topic_stored_bytes{topic="odd\\"\\\\\\n"} 4' in lines
    assert 'brook_group_lag{group="g",topic="odd\\"\\\\\\n"} 1' in lines
    assert f'brook_client_claimed{{client="{mq.client}",group="g"}} 1' in lines
    assert "# TYPE brook_group_lag gauge" in lines


def test_slow_handlers_time_outs_and_deaths_are_alerts(url: str, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    alerts: list[Alert] = []
    with Brook(url, clock=clock, on_alert=alerts.append, durability="off") as mq:

        @mq.consumer("t", group="g", threads=0, timeout=100, ladder=[])
        def slow(messages: list[Message]) -> None:
            for _ in range(3):
                clock.now += 40
                slow.tend()

        mq.send("t", b"x")
        slow.step()
    assert [(alert.kind, alert.at, alert.text) for alert in alerts] == [
        ("slow", 1080.0, "1 message is still with the handler after 80 s"),
        ("timeout", 1120.0, "timed out: the handler took longer than 100 s"),
        ("dead", 1120.0, "1 message is dead: timed out: the handler took longer than 100 s"),
    ]
    assert {(alert.group, alert.client, alert.thread) for alert in alerts} == {("g", mq.client, "MainThread")}
    assert "is still with the handler after 80 s" in caplog.text


def test_a_callback_that_raises_harms_nobody(url: str, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fail(alert: Alert) -> None:
        raise ValueError("no")

    with Brook(url, clock=clock, on_alert=fail, durability="off") as mq:

        @mq.consumer("t", group="g", threads=0)
        def slow(messages: list[Message]) -> None:
            clock.now += 61

        mq.send("t", b"x")
        slow.step()
        assert mq.lag("g") == 0
    assert "the callback for alerts raised" in caplog.text


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    taken: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/alerts", taken
        server.shutdown()
        thread.join()


def test_alerts_are_posted(url: str, clock: Any, hook: tuple[str, list[dict[str, Any]]]) -> None:
    address, taken = hook
    with Brook(url, clock=clock, durability="off") as mq:
        mq.set("alert_url", address)

        @mq.consumer("t", group="g", threads=0)
        def slow(messages: list[Message]) -> None:
            clock.now += 61

        mq.send("t", b"x")
        slow.step()
    assert [(alert["kind"], alert["group"]) for alert in taken] == [("slow", "g")]


def test_a_dead_address_harms_nobody(mq: Brook, clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    mq.set("alert_url", "http://127.0.0.1:9/")
    with pytest.raises(BadSetting, match="alert_url='ftp://x'"):
        mq.set("alert_url", "ftp://x")

    @mq.consumer("t", group="g", threads=0)
    def slow(messages: list[Message]) -> None:
        clock.now += 61

    mq.send("t", b"x")
    slow.step()
    mq.close()
    assert "the alert was not taken" in caplog.text


def test_alerts_are_kept_and_counted_for_all_to_see(url: str, clock: Any) -> None:
    with Brook(url, clock=clock, durability="off") as watcher:
        with Brook(url, clock=clock, durability="off") as mq:

            @mq.consumer("t", group="g", threads=0, timeout=100, ladder=[])
            def slow(messages: list[Message]) -> None:
                clock.now += 101
                slow.tend()

            for _ in range(2):
                mq.send("t", b"x")
                slow.step()
        kept = watcher.alerts()
        assert {(alert.kind, alert.at) for alert in kept[:3]} == {(k, 1202.0) for k in ("slow", "timeout", "dead")}
        assert {(alert.group, alert.client, alert.thread) for alert in kept} == {("g", mq.client, "MainThread")}
        assert watcher.alerts(1) == kept[:1]
        lines = watcher.metrics().splitlines()
        assert "# TYPE brook_alerts_total counter" in lines
        for kind in ("slow", "timeout", "dead"):
            assert f'brook_alerts_total{{group="g",kind="{kind}"}} 2' in lines


def test_an_alert_that_cannot_be_kept_harms_nobody(
    mq: Brook, clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @mq.consumer("t", group="g", threads=0)
    def slow(messages: list[Message]) -> None:
        clock.now += 61

    def fail(alert: Alert) -> None:
        raise StoreFailed("planted")

    monkeypatch.setattr(mq._alerts, "_keep", fail)
    mq.send("t", b"x")
    slow.step()
    assert (mq.lag("g"), mq.alerts()) == (0, [])
    assert "the alert is not kept: planted" in caplog.text


def test_listeners_are_seen_and_leave(url: str, clock: Any) -> None:
    with Brook(url, clock=clock, durability="off") as watcher:
        with Brook(url, clock=clock, durability="off") as mq:
            mq.append(["t"] * 5 + ["u"], [b"x"] * 6)
            first = mq.listen(["t", "u"], start="earliest")
            while not watcher.listener_states():  # told by a thread of its own
                threading.Event().wait(0.002)
            second = mq.listen(["t", "t"], start="latest")
            first.done(first.receive(4))
            clock.now += 20
            mq._upkeep.step()
            assert [(s.client, s.listener, s.topic, s.next, s.lag, s.seen) for s in watcher.listener_states()] == [
                (mq.client, 1, "t", 2, 3, 1020.0),
                (mq.client, 1, "u", 1, 0, 1020.0),
                (mq.client, 2, "t", 5, 0, 1020.0),
            ]
            gauge = f'brook_listener_lag{{client="{mq.client}",listener="1",topic="t"}} 3'
            assert gauge in watcher.metrics().splitlines()
            del first
            mq._upkeep.step()
            assert [state.listener for state in watcher.listener_states()] == [2]
            del second
            mq._upkeep.step()
            assert watcher.listener_states() == []
            third = mq.listen("t")
            mq._upkeep.step()
            assert [state.listener for state in watcher.listener_states()] == [3]
        assert watcher.listener_states() == []
        del third


@pytest.fixture
def babbler() -> Iterator[str]:
    """The address of something that answers, and not in HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            with contextlib.suppress(OSError):
                while True:
                    caller, _ = server.accept()
                    with caller:
                        caller.recv(1000)
                        caller.sendall(b"what?\r\n\r\n")

        thread = threading.Thread(target=babble)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_an_address_that_is_no_web_server_harms_nobody(babbler: str, caplog: pytest.LogCaptureFixture) -> None:
    address = babbler
    alerts = Alerts(None, lambda: address, lambda _: None)
    alert = Alert("slow", "g", "client", "thread", "text", 0.0)
    alerts.tell(alert)
    address = "http://host:80a/"
    alerts.tell(alert)
    alerts.close()
    assert caplog.text.count("the alert was not taken") == 2


def test_an_address_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brook.alerts.SECONDS", 0.01)
    entered, leave = threading.Event(), threading.Event()

    def hang(url: str, alert: Alert) -> None:
        entered.set()
        assert leave.wait(60)

    monkeypatch.setattr("brook.alerts._post", hang)
    alerts = Alerts(None, lambda: "http://127.0.0.1/", lambda _: None)
    for _ in range(WAITING + 2):
        alerts.tell(Alert("slow", "g", "client", "thread", "text", 0.0))
        assert entered.wait(60)
    closing = threading.Thread(target=alerts.close)
    closing.start()
    closing.join(30)
    hung = closing.is_alive()
    leave.set()
    closing.join()
    alerts.close()
    assert not hung


def test_consumers_are_seen_and_leave(url: str) -> None:
    with Brook(url, durability="off") as watcher:
        with Brook(url, durability="off") as mq:

            @mq.consumer("t", group="g", threads=2)
            def note(messages: list[Message]) -> None: ...

            while not (states := watcher.client_states()):
                threading.Event().wait(0.002)
            assert [(state.client, state.group, state.threads) for state in states] == [(mq.client, "g", 2)]
        assert watcher.client_states() == []
