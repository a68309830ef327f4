"""Codecs: bytes to values and back, a batch at a time, without a socket."""


class Unreadable(Exception):
    """What has come is not of the protocol that was expected: often another one is spoken there."""

    protocol: str

    def __str__(self) -> str:
        return f"no {self.protocol}: {super().__str__()}"
