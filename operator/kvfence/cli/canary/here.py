"""Whether an address is this machine itself. Nothing is sent to find out."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from kvfence.cli.threads import in_thread

DISCARD = 9
"""A port; which one does not matter."""


async def all_here(urls: tuple[str, ...]) -> bool:
    """Whether each of the URLs leads to this machine, to whatever its name resolves."""
    hosts = {urlsplit(url).hostname or "" for url in urls}
    return await in_thread(lambda: all(is_here(host) for host in hosts))


def is_here(host: str) -> bool:
    """Whether all addresses of a host are of this machine; not, when it has none that can be found out.

    A forwarded port (`ssh -L`, `kubectl port-forward`) is an address of this machine, too: what is behind it cannot be
    seen from here.
    """
    try:
        found = socket.getaddrinfo(host or ".", DISCARD, type=socket.SOCK_DGRAM)  # no host at all would mean this one
    except (OSError, UnicodeError):  # no such name, or none that could be one
        return False
    addresses = {str(address[0]) for *_, address in found}
    return bool(addresses) and all(_is_own(address) for address in addresses)


def _is_own(address: str) -> bool:
    """Whether the kernel would send from this very address to reach it, as it does for its own alone."""
    plain = ipaddress.ip_address(address.partition("%")[0])
    if plain.is_loopback or plain.is_unspecified:  # what is sent to 0.0.0.0 stays here
        return True
    family = socket.AF_INET if plain.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, DISCARD))  # of a datagram socket: sets the address, sends nothing
        except OSError:
            return False
        return ipaddress.ip_address(str(probe.getsockname()[0]).partition("%")[0]) == plain
