"""From a URL to the store that it names."""

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
_MYSQL_PORT, _REDIS_PORT = 3306, 6379


def open_store(url: str, *, durability: Durability, patience: float, create: bool) -> Store:
    """create: False: NoQueue, unless there is a queue already."""
    parts = _split(url)
    if parts.scheme == "sqlite":
        return SqliteStore(sqlite_path(url), durability=durability, patience=patience, create=create)
    if parts.scheme in ("mysql", "mysqls"):
        return MysqlStore(mysql_target(url), durability=durability, patience=patience, create=create)
    raise BadUrl(f"{url!r}: {parts.scheme or 'no'} database is not supported: {_SQLITE_FORM}; {_MYSQL_FORM}")


def sqlite_path(url: str) -> Path:
    parts = _split(url)
    if parts.query or parts.fragment or parts.netloc:
        raise BadUrl(f"{url!r}: a SQLite URL is nothing but a path: {_SQLITE_FORM}")
    path = unquote(parts.path[1:])
    if not path or path.endswith("/"):
        raise BadUrl(f"{url!r}: names no file: {_SQLITE_FORM}")
    if path == ":memory:":
        raise BadUrl(f"{url!r}: a queue in memory has nobody to share it with: name a file")
    return Path(path)


def mysql_target(url: str) -> Target:
    parts = _split(url)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    database = unquote(parts.path[1:])
    shown = url.replace(f":{password}@", ":...@") if password else url
    if not hosts or not user or not database or "/" in database or parts.fragment:
        raise BadUrl(f"{shown!r}: names no user, host or database, or more: {_MYSQL_FORM}")
    options = _options(parts, shown)
    return Target(
        [_host(each, _MYSQL_PORT, shown) for each in hosts.split(",")],
        unquote(user),
        unquote(password),
        database,
        _host(options["redis"], _REDIS_PORT, shown) if "redis" in options else None,
        {name: options[name] for name in _FILES if name in options} if parts.scheme == "mysqls" else None,
    )


def _options(parts: SplitResult, shown: str) -> Mapping[str, str]:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = ("redis", *_FILES) if parts.scheme == "mysqls" else ("redis",)
    for name in options.keys() - known:
        raise BadUrl(f"{shown!r}: {name!r} is no option: {_MYSQL_FORM}")
    return options


def _host(text: str, default: int, shown: str) -> tuple[str, int]:
    name, _, port = text.partition(":")
    if not name or (port and not port.isdecimal()):
        raise BadUrl(f"{shown!r}: {text!r} is no host with a port: {_MYSQL_FORM}")
    return name, int(port or default)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise BadUrl(f"{url!r}: {error}: {_SQLITE_FORM}; {_MYSQL_FORM}") from error
