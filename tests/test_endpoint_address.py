"""Where a server is: what a URL may be, and what of it is shown."""

import pytest

from whichwall.collect.endpoint.address import address_of
from whichwall.schemas.errors import UsageError


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1/models"),
        ("http://localhost:8000/", "http://localhost:8000/v1/models"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1/models"),
        ("http://localhost:8000/v1/completions", "http://localhost:8000/v1/models"),
        ("https://a.b/c/v1/", "https://a.b/c/v1/models"),
        ("http://[::1]:8000", "http://[::1]:8000/v1/models"),
        ("https://u:p@a.b/c?key=1#x", "https://u:p@a.b/c/v1/models?key=1"),
    ],
)
def test_paths_go_below_the_servers_own_with_or_without_v1(url: str, asked: str) -> None:
    assert address_of(url).url("/v1/models") == asked


def test_user_password_and_query_are_not_shown() -> None:
    address = address_of("https://user:word@a.b:8443/c/v1?key=1")

    assert address.shown == "https://a.b:8443/c"
    assert address.secrets == ["user", "word", "key=1"]


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("[::1]", True),
        ("0.0.0.0", True), ("10.0.0.1", False), ("a.b", False), ("localhost.a.b", False),
    ],
)  # fmt: skip
def test_only_a_loopback_address_is_this_machine(host: str, here: bool) -> None:
    assert address_of(f"http://{host}:8000").is_here is here


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://a", "http://", "http://a:port", "http://a:99999",
            "http://[::1", "http://a b", "http:///v1", "http://a:0"]
)  # fmt: skip
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected http://HOST:PORT"):
        address_of(url)


def test_a_refused_address_with_a_secret_is_not_repeated() -> None:
    with pytest.raises(UsageError) as refused:
        address_of("ftp://user:word@a")

    assert "word" not in str(refused.value)
