"""For whom a proxy asks: an address whatever the header has, and of nobody's choosing but a
proxy's."""

import pytest

from tidegate_service.core.access.proxies import HOPS, Proxies

PROXY = "10.0.0.1"
PROXIES = Proxies(("10.0.0.0/8", "192.0.2.7", "fd00::/8"))


def caller(*values: bytes) -> str:
    return PROXIES.caller(PROXY, [(b"x-forwarded-for", value) for value in values])


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("10.9.9.9", True),
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("fd00::1", True),
        ("fd00::1%eth0", True),
        ("2001:db8::1", False),
        # As the system has it where the service listens on IPv6.
        ("::ffff:10.9.9.9", True),
        ("::ffff:192.0.2.8", False),
        ("", False),
        ("proxy", False),
    ],
)
def test_which_are_proxies(address, is_one):
    assert PROXIES.has(address) is is_one
    assert not Proxies().has(address)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([b"198.51.100.1"], "198.51.100.1"),
        ([b" 198.51.100.1\t"], "198.51.100.1"),
        ([b"198.51.100.1:4711"], "198.51.100.1"),
        ([b"2001:db8::1"], "2001:db8::1"),
        ([b"[2001:db8::1]"], "2001:db8::1"),
        ([b"[2001:DB8:0::1]:443"], "2001:db8::1"),
        ([b"::ffff:198.51.100.1"], "198.51.100.1"),
        # What a caller says itself is to the left of what the proxy says of it.
        ([b"203.0.113.9, 198.51.100.1"], "198.51.100.1"),
        ([b"203.0.113.9", b"198.51.100.1"], "198.51.100.1"),
        ([b"junk, 198.51.100.1"], "198.51.100.1"),
        # Proxies behind one another,
        ([b"203.0.113.9, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ([b"198.51.100.1", b"10.0.0.3:80, 192.0.2.7"], "198.51.100.1"),
        # of which one asks by itself, or does not know for whom.
        ([b"10.0.0.3"], "10.0.0.3"),
        ([b"unknown, 10.0.0.3"], "10.0.0.3"),
        ([b"198.51.100.1" + b", 10.0.0.2" * HOPS], "198.51.100.1"),
        ([b"198.51.100.1" + b", 10.0.0.2" * (HOPS + 1)], "10.0.0.2"),
    ],
)
def test_for_whom_it_asks(values, found):
    assert caller(*values) == found


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b",",
        b"198.51.100.1,",
        b"unknown",
        b"_hidden",
        b"198.51.100.999",
        b"198.51.100.1.1",
        b"198.51.100.1:port",
        b"198.51.100.1:123456",
        b"198.51.100.1 203.0.113.9",
        b"198.51.100.1\x00",
        b"2001:db8::1::2",
        b"[2001:db8::1",
        b"[2001:db8::1]443",
        b"2001:db8::1%" + b"x" * 9_000,
        b"[2001:db8::1%eth0]:443",
        b"1" * 16_000,
        b"1.2.3.4." * 2_000,
        "\u0661.2.3.4".encode(),
        b"\xb2.2.3.4",
        b"=\xff\xfe",
    ],
)
def test_what_is_no_address_is_the_proxys_own(junk):
    assert caller(junk) == PROXY
    assert caller(b"198.51.100.1", junk) == PROXY


def test_without_the_header_it_is_the_proxys_own():
    assert PROXIES.caller(PROXY, [(b"forwarded", b"for=198.51.100.1")]) == PROXY
