"""The console's server.

1. It listens on the loopback address unless told otherwise.
2. Nothing is shown without the token: in the address once, from then on in a cookie that scripts and other sites do not
   get; or as a bearer token, for Prometheus.
3. What changes something is a POST, and carries the token in its form too, so that no other site can send it.
4. Only names of this machine are answered while we listen on it: another site's name that leads here is not ours.
"""

import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Mapping
from html import escape
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from brook import console
from brook.deeds import DEEDS, Fields
from brook.errors import BadSetting, BrookError
from brook.queue import Brook

COOKIE = "brook_token"
MAX_FORM = 64 * 1024
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


# By path: of the queue, the token for forms, and the fields of the address.
_PAGES: Mapping[str, Callable[[Brook, str, Fields], str]] = {
    "/": lambda mq, _, fields: console.topics_page(mq),
    "/topics": lambda mq, _, fields: console.topics_page(mq),
    "/groups": lambda mq, token, fields: console.groups_page(mq, token),
    "/clients": lambda mq, _, fields: console.clients_page(mq),
    "/listeners": lambda mq, _, fields: console.listeners_page(mq),
    "/alerts": lambda mq, _, fields: console.alerts_page(mq),
    "/settings": lambda mq, token, fields: console.settings_page(mq, token),
    "/topic": lambda mq, _, fields: console.topic_page(
        mq, fields["name"], fields.get("key", ""), fields.get("tag", "")
    ),
    "/trace": lambda mq, _, fields: console.trace_page(mq, fields["topic"], int(fields["offset"])),
    "/dead": lambda mq, token, fields: console.dead_page(mq, fields["group"], token),
}


class Answer(NamedTuple):
    status: int
    text: str
    kind: str = "text/html"
    headers: tuple[tuple[str, str], ...] = ()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, mq: Brook, host: str, port: int, token: str | None = None) -> None:
        self.mq = mq
        self.token = secrets.token_urlsafe(24) if token is None else _checked(token)
        self.host = host
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise BadSetting(f"{host}:{port}: {error}: give another --host or --port") from error

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.server_port}/?{urlencode({'token': self.token})}"

    def knows(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self.token.encode())

    def is_our_name(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return not _is_loopback(self.host) or _is_loopback(name)


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        fields = _fields(query)
        self._reply(self._guarded(lambda: self._get(path, fields), fields.get("token")))

    def do_POST(self) -> None:
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > MAX_FORM:
            self._reply(_error(400, "the form is too large, or has no length"))
            return
        fields = _fields(self.rfile.read(int(size)).decode("utf-8", "replace"))
        self._reply(self._guarded(lambda: self._post(self.path, fields), None))

    def log_message(self, *_: object) -> None:
        """Not on standard error: addresses hold the token."""

    def _guarded(self, answer: Callable[[], Answer], token: str | None) -> Answer:
        if not self.server.is_our_name(self.headers.get("Host", "")):
            return _error(403, "not a name of this machine")
        if token is not None and self.server.knows(token):
            cookie = f"{COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
            return Answer(303, "", headers=(("Location", _without_token(self.path)), ("Set-Cookie", cookie)))
        if not any(self.server.knows(each) for each in self._tokens()):
            return _error(401, "open the address that `brook serve` has printed")
        try:
            return answer()
        except BrookError as error:
            return _error(400, str(error))
        except (KeyError, ValueError):
            return _error(400, "the address is not whole")

    def _get(self, path: str, fields: Fields) -> Answer:
        if path == "/metrics":
            return Answer(200, self.server.mq.metrics(), "text/plain")
        if path not in _PAGES:
            return _error(404, "there is no such page")
        return Answer(200, _PAGES[path](self.server.mq, self.server.token, fields))

    def _post(self, path: str, fields: Fields) -> Answer:
        if not self.server.knows(fields.get("secret", "")):
            return _error(403, "the form is not ours")
        if path not in DEEDS:
            return _error(404, "there is no such page")
        return Answer(303, "", headers=(("Location", DEEDS[path](self.server.mq, fields)),))

    def _tokens(self) -> list[str]:
        """What the browser, or Prometheus, has brought."""
        try:
            cookie = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return [cookie.value if cookie else "", bearer]

    def _reply(self, answer: Answer) -> None:
        body = answer.text.encode("utf-8", "replace")
        self.send_response(answer.status)
        for name, value in (*HEADERS.items(), *answer.headers):
            self.send_header(name, value)
        self.send_header("Content-Type", f"{answer.kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _checked(token: str) -> str:
    """One that the address and the cookie carry as it is."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", token):
        raise BadSetting("--token: give one of A-Z, a-z, 0-9, _ and -, or none to have a new one")
    return token


def _error(status: int, text: str) -> Answer:
    return Answer(status, console.page("Not done", f"<p>{escape(text)}</p>"))


def _fields(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


def _without_token(address: str) -> str:
    """The page that was asked for, if it is one of ours."""
    path, _, query = address.partition("?")
    fields = {name: value for name, value in _fields(query).items() if name != "token"}
    if path not in (*_PAGES, "/metrics"):
        return "/topics"
    return f"{path}?{urlencode(fields)}" if fields else path


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
