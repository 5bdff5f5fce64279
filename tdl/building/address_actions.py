"""Builds what the static part says of addresses at links that carry frames.

`address=A/P` is of the end of a link that is a service's, `address=A/P--B/P` of both, as the ends
stand in `link a--b`; either side may be empty. `A/P,B/P` is one of each family. A `+` behind it has
each further instance get the next. Source: docs/nodes.md.
"""

from __future__ import annotations

from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface

from tdl import ast
from tdl.building.builder import WrittenProperty
from tdl.building.running_actions import RunningActions
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import ADDRESSES

_EXAMPLE = "write address=10.0.0.1/30, or address=10.0.0.1/30--10.0.0.2/30 for both ends"
NO_GATEWAY = "none"


class AddressActions(RunningActions):
    """Actions for `addresses`, `address=` and `gateway=`."""

    def addresses(self, _word: Token, how: Token) -> tuple[ast.Statement, ...]:
        if how.text not in ADDRESSES:
            hint = did_you_mean(how.text, ADDRESSES) or "write `addresses auto`"
            self.error("TS0607", how.span, f"addresses cannot be '{how.text}'", hint)
        return (ast.AutoAddresses(self.whole_span),)

    def end_addresses(
        self, prop: WrittenProperty | None
    ) -> tuple[ast.EndAddresses | None, ast.EndAddresses | None]:
        """Of both ends. Where one is given without `--`, it stands first: the compiler knows which
        end is a service."""
        token = self._one_text(prop)
        if prop is None or token is None:
            return None, None
        sides = self.text(token).split("--")
        if len(sides) > 2 or not any(sides):
            self.error("TS0601", token.span, f"'{token.text:.60}' is not of two ends", _EXAMPLE)
            return None, None
        first, second = (self._end(side, prop) for side in (*sides, "")[:2])
        return first, second

    def gateway(self, prop: WrittenProperty | None) -> str | None:
        token = self._one_text(prop)
        if prop is None or token is None:
            return None
        text = self.text(token)
        try:
            return text if text == NO_GATEWAY else str(ip_address(text))
        except ValueError:
            message = f"'{text:.60}' is not an address of a gateway"
            self.error("TS0601", token.span, message, "write gateway=10.0.0.1, or gateway=none")
            return None

    def _one_text(self, prop: WrittenProperty | None) -> Token | None:
        if prop is None:
            return None
        return self.single(prop, ("WORD", "STRING"), "an address such as 10.0.0.1/30")

    def _end(self, text: str, prop: WrittenProperty) -> ast.EndAddresses | None:
        found = [self._address(word, prop) for word in text.split(",")] if text else []
        kept = sorted((one for one in found if one is not None), key=_version)
        if len({_version(one) for one in kept}) < len(kept):
            message = f"'{text:.60}' has two addresses of one family"
            self.error("TS0601", prop.span, message, "an interface has one of each")
        return ast.EndAddresses(tuple(kept), prop.span) if kept else None

    def _address(self, word: str, prop: WrittenProperty) -> ast.InterfaceAddress | None:
        counts = word.endswith("+")
        try:
            found = ip_interface(word.removesuffix("+"))
        except ValueError:
            self.error("TS0601", prop.span, f"'{word:.60}' is not an address", _EXAMPLE)
            return None
        problem = _unusable(found, "/" in word)
        if problem:
            self.error("TS0601", prop.span, f"'{word:.60}' {problem}", _EXAMPLE)
            return None
        return ast.InterfaceAddress(str(found.ip), found.network.prefixlen, counts)


def _version(one: ast.InterfaceAddress) -> int:
    return 6 if ":" in one.text else 4


def _unusable(found: IPv4Interface | IPv6Interface, has_prefix: bool) -> str:
    """Why no interface has this address; or ''."""
    if not has_prefix:
        return "has no length of a prefix"
    if found.ip.is_multicast or found.ip.is_unspecified or found.ip.is_loopback:
        return "is not an address of an interface"
    if isinstance(found, IPv6Interface):
        return "names a zone" if found.ip.scope_id else ""
    network = found.network
    if network.prefixlen < 31 and found.ip in (network.network_address, network.broadcast_address):
        return f"is the network itself, or all of {network}"
    return ""
