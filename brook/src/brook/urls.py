"""From a URL to the store that it names."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from brook.errors import BadUrl
from brook.model import Durability
from brook.stores.base import Store
from brook.stores.sqlite import SqliteStore

_FORM = "write sqlite:///relative/path.db or sqlite:////absolute/path.db"


def open_store(url: str, *, durability: Durability, patience: float) -> Store:
    return SqliteStore(sqlite_path(url), durability=durability, patience=patience)


def require_existing(url: str) -> None:
    """BadUrl, unless there is a queue already."""
    if not (path := sqlite_path(url)).exists():
        raise BadUrl(f"{url!r}: there is no {path}: give the URL of a queue that exists")


def sqlite_path(url: str) -> Path:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadUrl(f"{url!r}: {error}: {_FORM}") from error
    if parts.scheme != "sqlite":
        raise BadUrl(f"{url!r}: {parts.scheme or 'no'} database is not supported: {_FORM}")
    if parts.query or parts.fragment or parts.netloc:
        raise BadUrl(f"{url!r}: a SQLite URL is nothing but a path: {_FORM}")
    path = unquote(parts.path[1:])
    if not path or path.endswith("/"):
        raise BadUrl(f"{url!r}: names no file: {_FORM}")
    if path == ":memory:":
        raise BadUrl(f"{url!r}: a queue in memory has nobody to share it with: name a file")
    return Path(path)
