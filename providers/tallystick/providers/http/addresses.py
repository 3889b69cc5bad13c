"""Which addresses a link of an answer may lead to: a provider must not send the daemon into its own network."""

import ipaddress
from collections.abc import Iterable
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

# Translators carry the IPv4 address in the last 32 bits.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")


def may_be_reached(text: str, allowed: Iterable[Network]) -> bool:
    """Return whether an address is public, or in an allowed network.

    Args:
        text: an IPv4 or IPv6 address, with a zone perhaps.
        allowed: networks that are private and allowed all the same.
    """
    address = _innermost(ipaddress.ip_address(text.partition("%")[0]))
    if any(address.version == network.version and address in network for network in allowed):
        return True
    if isinstance(address, ipaddress.IPv6Address):
        return address in _UNICAST and address.is_global
    return address.is_global and not address.is_multicast


def _innermost(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one merely wraps."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    wrapped = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
    return address if wrapped is None else wrapped
