"""Where a server is: what requests go to, and what of it may be shown and kept."""

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from whichwall.schemas.errors import UsageError

SCHEMES = ("http", "https")
# Given with or without, since servers print both.
VERSIONED, COMPLETIONS = "/v1", "/v1/completions"


@dataclass(frozen=True)
class Address:
    """A server's base; user, password and query may be secrets and are never shown."""

    _parts: SplitResult  # its path ends without a slash

    @property
    def shown(self) -> str:
        """Return scheme, host, port and path."""
        parts = self._parts
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    @property
    def is_here(self) -> bool:
        """Tell whether the host is this machine by its loopback address."""
        host = self._parts.hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return address.is_loopback or address.is_unspecified

    @property
    def secrets(self) -> list[str]:
        """Return what must not be shown, even where a server repeats it."""
        parts = self._parts
        return [text for text in (parts.username, parts.password, parts.query) if text]

    @property
    def has_user(self) -> bool:
        """Tell whether the URL says itself who asks."""
        return self._parts.username is not None

    def url(self, path: str) -> str:
        """Return the URL of a path, with what is secret of the server's."""
        parts = self._parts
        return urlunsplit((parts.scheme, parts.netloc, parts.path + path, parts.query, ""))


def address_of(url: str) -> Address:
    """Return the address in a URL, with or without /v1 at its end.

    Raises:
        UsageError: it is no URL of a server; its text is not repeated if it may hold a secret.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(letter.isspace() or not letter.isprintable() for letter in url.strip()):
        shown = "" if "@" in url or "?" in url else f" {url}"
        raise UsageError(f"--url{shown}: is no address of a server; expected http://HOST:PORT")
    path = parts.path.rstrip("/")
    for end in (COMPLETIONS, VERSIONED):
        path = path.removesuffix(end)
    return Address(parts._replace(path=path, fragment=""))
