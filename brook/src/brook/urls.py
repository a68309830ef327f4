"""From a URL to the store that it names."""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from brook.errors import BadUrl
from brook.model import Durability
from brook.stores.base import Store
from brook.stores.mysql import MysqlStore
from brook.stores.mysql_database import Target
from brook.stores.sqlite import SqliteStore

_SQLITE_FORM = "write sqlite:///relative/path.db or sqlite:////absolute/path.db"
_MYSQL_FORM = (
    "write mysql://user:password@host:3306/database, with more hosts, if it is a cluster, after commas, "
    "and ?redis=host:6379, if Redis hands out places; for TLS mysqls://, with ?ca=, cert= and key= for files"
)
_FILES = ("ca", "cert", "key")
_MYSQL_PORT, _REDIS_PORT, _LAST_PORT = 3306, 6379, 65535
_HOST = re.compile(r"(\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:\[\]]+))(:(?P<port>[0-9]*))?")
_PASSWORD = re.compile(r":(?!//).*@", re.DOTALL)


def open_store(url: str, *, durability: Durability, patience: float, create: bool) -> Store:
    """create: False: NoQueue, unless there is a queue already."""
    parts = _split(url)
    if parts.scheme == "sqlite":
        return SqliteStore(sqlite_path(url), durability=durability, patience=patience, create=create)
    if parts.scheme in ("mysql", "mysqls"):
        return MysqlStore(mysql_target(url), durability=durability, patience=patience, create=create)
    raise BadUrl(f"{_shown(url)}: {parts.scheme or 'no'} database is not supported: {_SQLITE_FORM}; {_MYSQL_FORM}")


def sqlite_path(url: str) -> Path:
    parts = _split(url)
    if parts.query or parts.fragment or parts.netloc:
        raise BadUrl(f"{_shown(url)}: a SQLite URL is nothing but a path: {_SQLITE_FORM}")
    path = unquote(parts.path[1:])
    if not path or path.endswith("/"):
        raise BadUrl(f"{_shown(url)}: names no file: {_SQLITE_FORM}")
    if path == ":memory:":
        raise BadUrl(f"{_shown(url)}: a queue in memory has nobody to share it with: name a file")
    return Path(path)


def mysql_target(url: str) -> Target:
    parts = _split(url)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    database = unquote(parts.path[1:])
    if not hosts or not user or not database or "/" in database or parts.fragment:
        raise BadUrl(f"{_shown(url)}: names no user, host or database, or more: {_MYSQL_FORM}")
    options = _options(parts, url)
    return Target(
        [_host(each, _MYSQL_PORT, url) for each in hosts.split(",")],
        unquote(user),
        unquote(password),
        database,
        _host(options["redis"], _REDIS_PORT, url) if "redis" in options else None,
        {name: options[name] for name in _FILES if name in options} if parts.scheme == "mysqls" else None,
    )


def _options(parts: SplitResult, url: str) -> Mapping[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = ("redis", *_FILES) if parts.scheme == "mysqls" else ("redis",)
    for name in options.keys() - known:
        raise BadUrl(f"{_shown(url)}: {name!r} is no option: {_MYSQL_FORM}")
    return options


def _host(text: str, default: int, url: str) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None or not _can_be_looked_up(found["name"]) or int(found["port"] or default) > _LAST_PORT:
        raise BadUrl(f"{_shown(url)}: {text!r} is no host with a port: {_MYSQL_FORM}")
    return found["ipv6"] or found["name"], int(found["port"] or default)


def _can_be_looked_up(name: str | None) -> bool:
    """Its parts may have 63 characters."""
    try:
        return bool((name or "::").encode("idna"))
    except UnicodeError:
        return False


def _split(url: object) -> SplitResult:
    if not isinstance(url, str):
        raise BadUrl(f"{_shown(url)}: not text: {_SQLITE_FORM}; {_MYSQL_FORM}")
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadUrl(f"{_shown(url)}: {_shown(str(error))}: {_SQLITE_FORM}; {_MYSQL_FORM}") from None
    if "\0" in unquote(url):
        raise BadUrl(f"{_shown(url)}: has a zero byte in it, as no name has: {_SQLITE_FORM}; {_MYSQL_FORM}")
    return parts


def _shown(url: object) -> str:
    """Without the password."""
    return _PASSWORD.sub(":...@", repr(url))
