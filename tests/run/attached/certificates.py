"""Certificates for a test: an authority, and two that it has signed."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    folder: Path

    def __post_init__(self) -> None:
        self._make("authority", "Authority", "basicConstraints=critical,CA:TRUE")
        signed = ["-CA", str(self.authority), "-CAkey", str(self.folder / "authority.key")]
        self._make("server", "localhost", "subjectAltName=DNS:localhost", *signed)
        self._make("client", "ann", "extendedKeyUsage=clientAuth", *signed)

    def _make(self, name: str, whom: str, extension: str, *signed: str) -> None:
        key, certificate = str(self.folder / f"{name}.key"), str(self.folder / f"{name}.pem")
        kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        what = ["-subj", f"/CN={whom}", "-addext", extension, "-keyout", key, "-out", certificate]
        subprocess.run(["openssl", "req", *kind, *what, *signed], check=True, capture_output=True)

    @property
    def authority(self) -> Path:
        return self.folder / "authority.pem"

    @property
    def server(self) -> Path:
        return self.folder / "server.pem"

    @property
    def server_key(self) -> Path:
        return self.folder / "server.key"

    @property
    def trusted(self) -> str:
        """As an option of a URL."""
        return f"ca={self.authority}"

    @property
    def client(self) -> str:
        """As options of a URL."""
        return f"{self.trusted}&cert={self.folder / 'client.pem'}&key={self.folder / 'client.key'}"

    def as_store(self, path: Path, password: str) -> None:
        """The server's, as Java wants it."""
        files = ["-in", str(self.server), "-inkey", str(self.server_key), "-out", str(path)]
        subprocess.run(
            ["openssl", "pkcs12", "-export", *files, "-passout", f"pass:{password}"], check=True, capture_output=True
        )
