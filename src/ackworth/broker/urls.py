"""URLs of brokers that are a user's own, all of one form, and shown without what is secret in them:

    SCHEME://[USER[:PASSWORD]@]HOST[:PORT][/PATH][?OPTION=VALUE&…]

A kind has two schemes, the second of which is with TLS. With TLS there are the options `ca`, the file of the authority
that signed the broker's certificate, and `cert` and `key`, those of a certificate of the user's own. Other options, and
what a path means, are the kind's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ackworth.model.errors import BadInput

HIDDEN = "***"
FORM = "SCHEME://USER:PASSWORD@HOST:PORT"
_FILES = {"ca": "the certificate of the authority", "cert": "your certificate", "key": "the key of your certificate"}


@dataclass(frozen=True)
class Url:
    hosts: tuple[tuple[str, int], ...]
    user: str | None
    password: str | None = field(repr=False)
    tls: dict[str, str] | None  # files: ca, cert, key, as far as they are named; None without TLS
    path: str  # without the slash before it
    options: Mapping[str, str]  # the kind's own
    shown: str  # fit for a record and for a message

    def without_path(self) -> Self:
        """Raises BadInput if it has one: this kind has no use for it."""
        if self.path:
            raise BadInput(f"{self.shown}: a path means nothing here: leave '/{self.path}' away")
        return self

    @property
    def address(self) -> dict[str, Any]:
        """What drivers need that connect to one host."""
        host, port = self.hosts[0]
        return {"host": host, "port": port, "user": self.user, "password": self.password, "tls": self.tls}


def parse(url: str, schemes: Mapping[str, int], options: Sequence[str] = (), *, several: bool = False) -> Url:
    """several: whether there may be several hosts, with commas between them. Raises BadInput, without a secret."""
    parts = _split(url)
    shown = _shown(parts)
    try:
        hosts = tuple(_host(text, schemes[parts.scheme]) for text in parts.netloc.rpartition("@")[2].split(","))
        given = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise BadInput(f"{shown}: its host, port or options cannot be read: write it as {FORM}") from None
    if not all(host for host, _ in hosts):
        raise BadInput(f"{shown}: no host in it: write it as {FORM}")
    if len(hosts) > 1 and not several:
        raise BadInput(f"{shown}: names {len(hosts)} hosts: name one")
    secured = [*schemes].index(parts.scheme) == 1
    _check_options(shown, given, (*options, *_FILES), None if secured else [*schemes][1])
    user, password = (None if text is None else unquote(text) for text in (parts.username, parts.password))
    files = {name: str(Path(given[name]).absolute()) for name in _FILES if name in given}
    own = {name: value for name, value in given.items() if name not in _FILES}
    return Url(hosts, user or None, password, files if secured else None, unquote(parts.path[1:]), own, shown)


def show(url: str) -> str:
    """The URL without what is secret in it. Raises BadInput."""
    return _shown(_split(url))


def _split(url: str) -> SplitResult:
    """Whatever is before an @ may be secret, also where a URL does not have it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        raise BadInput(f"--attach: not a URL: write it as {FORM}") from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise BadInput("--attach: not a URL: in a password, write / as %2F, ? as %3F, # as %23 and @ as %40")
    return parts


def _shown(parts: SplitResult) -> str:
    """A user who has no password may be a token."""
    login, at, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{parts.scheme}://{f'{user}:{HIDDEN}' if colon else HIDDEN if at else ''}{at}{place}{parts.path}"


def _host(text: str, port: int) -> tuple[str, int]:
    """Raises ValueError, also for a name that no host can have."""
    found = urlsplit(f"//{text}")
    (found.hostname or "").encode("idna")
    return found.hostname or "", found.port or port


def _check_options(shown: str, given: Mapping[str, str], known: Sequence[str], with_tls: str | None) -> None:
    """with_tls: the scheme that it would take; None if it is that one."""
    for name, value in given.items():
        if name not in known:
            raise BadInput(f"{shown}: unknown option '{name}': known are {', '.join(known)}")
        if name in _FILES and with_tls:
            raise BadInput(f"{shown}: '{name}' is for TLS: write {with_tls}://…")
        if name in _FILES and not Path(value).is_file():
            raise BadInput(f"{shown}: there is no file {value}: name {_FILES[name]}")
    if "key" in given and "cert" not in given:
        raise BadInput(f"{shown}: a key without its certificate: name both, with cert=FILE&key=FILE")
