"""The console, spoken to over HTTP and looked at in a real browser."""

import http.client
import threading
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from browser import Browser, Page

from brook import BadSetting, Brook, Message, Refusal, console
from brook.serving import Server

NASTY = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture
def server(mq: Brook) -> Iterator[Server]:
    mq.send(NASTY, NASTY.encode(), key=NASTY, tags=[NASTY], properties={NASTY: NASTY})

    @mq.consumer(NASTY, group=NASTY, threads=0, ladder=[])
    def fail(messages: list[Message]) -> Refusal:
        return Refusal(NASTY)

    fail.step()
    listener = mq.listen(NASTY)
    mq._upkeep.step()
    with Server(mq, "127.0.0.1", 0) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()
    assert listener.lag() == 0


def ask(
    server: Server, path: str, headers: dict[str, str] | None = None, form: dict[str, str] | None = None
) -> tuple[int, str]:
    """The status, and the page or where it leads."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    method, body = ("GET", None) if form is None else ("POST", urlencode(form))
    connection.request(method, path, body, headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("Location") or text


def signed(server: Server) -> dict[str, str]:
    return {"Cookie": f"brook_token={server.token}"}


def pages() -> list[str]:
    name, group = urlencode({"name": NASTY}), urlencode({"group": NASTY})
    trace = urlencode({"topic": NASTY, "offset": 0})
    found = f"{name}&{urlencode({'key': NASTY, 'tag': NASTY})}"
    return [
        "/",
        "/topics",
        "/groups",
        "/clients",
        "/listeners",
        "/alerts",
        "/settings",
        f"/topic?{name}",
        f"/topic?{found}",
        f"/trace?{trace}",
        f"/dead?{group}",
    ]


def test_nothing_without_the_token(server: Server) -> None:
    for path in [*pages(), "/metrics", "/?token=guess", "/?token="]:
        assert ask(server, path)[0] == 401
        assert ask(server, path, {"Cookie": "brook_token=guess"})[0] == 401
    assert ask(server, "/drop", form={"group": NASTY, "secret": server.token})[0] == 401
    assert ask(server, f"/?token={server.token}")[0] == 303
    assert ask(server, "/metrics", {"Authorization": f"Bearer {server.token}"})[0] == 200


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("/", "/"), ("/groups", "/groups"), ("/topic?name=a+b&key=k", "/topic?name=a+b&key=k"), ("//evil", "/topics")],
)
def test_the_token_leads_to_the_page_that_was_asked_for(server: Server, asked: str, shown: str) -> None:
    address = f"{asked}{'&' if '?' in asked else '?'}token={server.token}"
    assert ask(server, address) == (303, shown)


def require_escaped(server: Server) -> None:
    for path in pages():
        status, text = ask(server, path, signed(server))
        assert status == 200
        assert "<script" not in text and "<img" not in text
    assert "&lt;script&gt;" in text


def test_every_page_is_escaped(server: Server) -> None:
    require_escaped(server)


def test_what_is_not_escaped_is_seen(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "escape", str)
    with pytest.raises(AssertionError):
        require_escaped(server)


def test_other_names_are_not_answered(server: Server) -> None:
    assert ask(server, "/topics", signed(server) | {"Host": "evil.example"})[0] == 403
    assert ask(server, "/topics", signed(server) | {"Host": "["})[0] == 403
    assert ask(server, "/topics", signed(server) | {"Host": "localhost:80"})[0] == 200


@pytest.mark.parametrize("token", ["a b;c", "\u043a\u043b\u044e\u0447", 'a"', "a,b", ""])
def test_a_token_that_no_cookie_can_carry(mq: Brook, token: str) -> None:
    with pytest.raises(BadSetting, match="of A-Z, a-z, 0-9, _ and -"):
        Server(mq, "127.0.0.1", 0, token)


def test_dead_letters_are_replayed_by_our_forms_alone(server: Server) -> None:
    mq = server.mq
    assert ask(server, "/replay", signed(server), {"group": NASTY})[0] == 403
    assert ask(server, f"/replay?{urlencode({'group': NASTY})}", signed(server))[0] == 404  # not by a link
    assert len(mq.dead(NASTY)) == 1
    assert ask(server, "/replay", signed(server), {"group": NASTY, "secret": server.token})[0] == 303
    assert (mq.dead(NASTY), mq.lag(NASTY)) == ([], 1)


def test_all_dead_letters_are_replayed_however_many(server: Server) -> None:
    mq = server.mq
    mq.append(["t"] * 1100, [b"x"] * 1100)
    mq.subscribe("g", ["t"])
    while batch := mq.receive("g"):
        mq._receiver.refuse(batch, "broken", None, ladder=[])
    assert ask(server, "/replay", signed(server), {"group": "g", "secret": server.token})[0] == 303
    assert (mq.dead("g"), mq.lag("g")) == ([], 1100)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nowhere", 404),
        ("//[", 404),
        ("/topic", 400),
        ("/topic?name=nowhere", 400),
        ("/trace?topic=x&offset=y", 400),
        (f"/trace?{urlencode({'topic': NASTY, 'offset': 10**20})}", 400),
    ],
)
def test_wrong_addresses(server: Server, path: str, status: int) -> None:
    assert ask(server, path, signed(server))[0] == status


def test_an_address_that_is_none(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.putrequest("GET", "http://[", skip_host=True)
    for name, value in (signed(server) | {"Host": "127.0.0.1"}).items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 404
    connection.close()


def test_a_port_that_is_taken(server: Server, mq: Brook) -> None:
    with pytest.raises(BadSetting, match="give another --host or --port"):
        Server(mq, "127.0.0.1", server.server_port)


@pytest.fixture
def page(browser: Browser, server: Server) -> Page:
    """Signed in, by the address that is printed."""
    tab = Page.new(browser)
    tab.go(server.address)
    assert title(tab) == "Topics - Brook"
    return tab


def title(page: Page) -> str:
    return str(page.ask("document.title"))


def text(page: Page) -> str:
    return str(page.ask("document.body.innerText"))


@pytest.mark.web
def test_every_page_in_a_real_browser(server: Server, page: Page) -> None:
    """What messages hold is text, and runs nothing."""
    for path in [*pages(), "/metrics"]:
        page.go(f"http://127.0.0.1:{server.server_port}{path}")
        assert page.ask("document.querySelectorAll('script, img').length") == 0
        assert page.ask("performance.getEntriesByType('navigation')[0].responseStatus") == 200
        assert title(page) != "owned"
        assert path == "/metrics" or title(page).endswith(" - Brook")
    page.go(f"http://127.0.0.1:{server.server_port}/topics")
    assert page.ask("[...document.querySelectorAll('nav a')].map(link => link.pathname)") == [
        f"/{name}" for name in console.PAGES
    ]
    assert page.complained() == []


@pytest.mark.web
def test_every_page_on_a_phone(server: Server, page: Page) -> None:
    """What is wide moves in its own frame, and the buttons of the settings are in sight."""
    page.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
    for path in pages():
        page.go(f"http://127.0.0.1:{server.server_port}{path}")
        assert page.ask("document.documentElement.scrollWidth") == 390, path
    page.go(f"http://127.0.0.1:{server.server_port}/settings")
    buttons = "[...document.querySelectorAll('button')].map(each => each.getBoundingClientRect().right)"
    assert max(page.ask(buttons)) <= 390


@pytest.mark.web
def test_forms_in_a_real_browser(server: Server, page: Page) -> None:
    mq, home = server.mq, f"http://127.0.0.1:{server.server_port}"
    page.go(f"{home}/groups")
    assert (mq.lag(NASTY), len(mq.dead(NASTY))) == (0, 1)
    page.go(f"{home}{pages()[-1]}")
    assert NASTY in text(page)
    page.submit('td form[action="/replay"]')
    assert (title(page), mq.lag(NASTY), mq.dead(NASTY)) == (f"Dead letters of {NASTY} - Brook", 1, [])
    assert "nothing" in text(page)
    page.go(f"{home}/groups")
    page.submit('form[action="/reset"]', group=NASTY, topic=NASTY, to="latest")
    assert (title(page), mq.lag(NASTY)) == ("Groups - Brook", 0)
    page.submit('form[action="/reset"]', group=NASTY, to="0")
    assert mq.lag(NASTY) == 1
    page.go(f"{home}/settings")
    page.submit('form:has(input[value="batch"])', value="7")
    assert (title(page), page.ask("document.querySelector('input[aria-label=batch]').value")) == (
        "Settings - Brook",
        "7",
    )
    assert mq.settings.batch == 7
    page.submit('form:has(input[value="batch"])', value="")
    assert mq.settings.batch == 10
    page.go(f"{home}/alerts")
    assert f"1 message is dead: {NASTY}" in text(page)
    assert page.complained() == []


@pytest.mark.web
def test_a_form_with_what_means_nothing_says_so(server: Server, page: Page) -> None:
    page.go(f"http://127.0.0.1:{server.server_port}/settings")
    page.submit('form:has(input[value="batch"])', value="many")
    assert "'many': not JSON" in text(page)
    assert "400" in str(page.complained())  # so an error would be seen
