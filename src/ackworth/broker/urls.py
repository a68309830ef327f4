"""URLs of brokers that are a user's own: taken apart, and shown without their password."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ackworth.model.errors import BadInput

HIDDEN = "***"
PARAMETERS = ("ca",)  # the file of the authority that signed the broker's certificate


@dataclass(frozen=True)
class Url:
    address: dict[str, Any]  # host, port, user, password, ca: for a driver
    path: str
    shown: str  # fit for a record and for a message


def parse(url: str, port: int) -> Url:
    """Raises BadInput, without the password in it."""
    try:
        parts = urlsplit(url)
        host, at = parts.hostname, parts.port or port
        parameters = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise BadInput(f"--attach: not a URL ({error}): write it as SCHEME://USER:PASSWORD@HOST:PORT") from error
    shown = _shown(parts)
    if not host:
        raise BadInput(f"{shown}: no host in it: write it as SCHEME://USER:PASSWORD@HOST:PORT")
    if unknown := sorted(parameters.keys() - set(PARAMETERS)):
        raise BadInput(f"{shown}: unknown parameter '{unknown[0]}': known are {', '.join(PARAMETERS)}")
    ca = parameters.get("ca")
    if ca is not None and not Path(ca).is_file():
        raise BadInput(f"{shown}: there is no file {ca}: name the certificate of the authority")
    user, password = (None if text is None else unquote(text) for text in (parts.username, parts.password))
    return Url({"host": host, "port": at, "user": user or None, "password": password, "ca": ca}, parts.path, shown)


def _shown(parts: SplitResult) -> str:
    place = parts.netloc.rpartition("@")[2]
    user = f"{parts.username or ''}{f':{HIDDEN}' if parts.password is not None else ''}"
    return f"{parts.scheme}://{f'{user}@' if user else ''}{place}{parts.path}"
