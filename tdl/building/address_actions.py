"""Builds what the static part says of addresses at links that carry frames.

`address=A/P` is of the end of a link that is a service's, `address=A/P--B/P` of both, as the ends
stand in `link a--b`; either side may be empty. `A/P,B/P` is one of each family. A `+` behind it has
each further instance get the next. Source: docs/nodes.md.
"""

from __future__ import annotations

import re
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Interface,
    ip_address,
    ip_interface,
)

from tdl import ast
from tdl.building.builder import WrittenProperty
from tdl.building.running_actions import RunningActions
from tdl.suggest import did_you_mean
from tdl.tokens.lexer import Token
from tdl.tokens.words import ADDRESSES

_EXAMPLE = "write address=10.0.0.1/30, or address=10.0.0.1/30--10.0.0.2/30 for both ends"
NO_GATEWAY = "none"
_CARD = re.compile(r"[^\s/:%]{1,15}")  # as the kernel takes names of devices


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

    def outside(self, name: ast.Name, found: dict[str, WrittenProperty]) -> ast.External:
        """What an `external` says; where something is missing, with texts that nothing reads."""
        card, behind = self._text_of(found, "if"), self._behind(name, found)
        if not card:
            message = f"{name.text!r} is behind no network card"
            self.error("TS0720", name.span, message, "write if=, such as if=eth1")
        elif not _CARD.fullmatch(card) or card in (".", ".."):
            message = f"'{card:.60}' is not the name of a network card"
            self.error("TS0720", found["if"].span, message, "such as if=eth1")
        own = self._network_word(found, "own", IPv4Interface, "own=10.1.1.1/24")
        gateway = self._network_word(found, "gateway", IPv4Address, "gateway=10.1.1.2")
        if own:
            self._check_own(found, IPv4Interface(own), behind, gateway)
        return ast.External(card, behind, own, gateway)

    def _check_own(
        self, found: dict[str, WrittenProperty], own: IPv4Interface, behind: str, gateway: str
    ) -> None:
        """The run, the machine and a router before it have different addresses of machines."""
        if problem := _unusable(own, has_prefix=True):
            self.error("TS0721", found["own"].span, f"'{own}' {problem}", "such as own=10.1.1.1/24")
        whose = {gateway: "gateway", behind.removesuffix("/32"): "address"}.get(str(own.ip))
        if whose:
            message = f"{own.ip} is {whose}=, too"
            self.error("TS0721", found["own"].span, message, "the run needs an address of its own")
        if not gateway:
            return
        beside = IPv4Interface(f"{gateway}/{own.network.prefixlen}")
        if beside.network != own.network or _unusable(beside, has_prefix=True):
            message = f"{gateway} is no neighbour of own={own}"
            self.error("TS0721", found["gateway"].span, message, "write one of that network")

    def _behind(self, name: ast.Name, found: dict[str, WrittenProperty]) -> str:
        address = self._network_word(found, "address", IPv4Address, "address=10.1.1.123")
        prefix = self._network_word(found, "prefix", IPv4Network, "prefix=10.1.0.0/16")
        if ("address" in found) == ("prefix" in found):
            what = "one of address= and prefix=" if "prefix" in found else "address= or prefix="
            message = f"{name.text!r} has {'both' if 'prefix' in found else 'no'} "
            message += "address and prefix" if "prefix" in found else "address"
            self.error("TS0720", name.span, message, f"write {what}, such as address=10.1.1.123")
        return f"{address}/32" if address else prefix

    def _text_of(self, found: dict[str, WrittenProperty], word: str) -> str:
        token = self._one_text(found.get(word))
        return "" if token is None else self.text(token)

    def _network_word(
        self,
        found: dict[str, WrittenProperty],
        word: str,
        kind: type[IPv4Address | IPv4Interface | IPv4Network],
        such_as: str,
    ) -> str:
        """Canonical, '' where it is not there or wrong."""
        text = self._text_of(found, word)
        if not text:
            return ""
        try:
            value = kind(text)
        except ValueError:
            message = f"'{text:.60}' is not what {word}= takes"
            self.error("TS0721", found[word].span, message, _better(text, such_as))
            return ""
        first = value.network_address if isinstance(value, IPv4Network) else IPv4Address(int(value))
        if first.is_multicast or first.is_loopback or first.is_unspecified:
            message = f"no machine behind a card has {text}"
            self.error("TS0721", found[word].span, message, f"such as {such_as}")
            return ""
        if kind is IPv4Interface and "/" not in text:
            message = f"'{text:.60}' has no length of a prefix"
            self.error("TS0721", found[word].span, message, f"such as {such_as}")
            return ""
        return str(value)

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


def _better(text: str, such_as: str) -> str:
    """Of an IPv4 prefix with bits beyond its length, what was probably meant."""
    try:
        return f"write {IPv4Network(text, strict=False)}" if "prefix" in such_as else such_as
    except ValueError:
        return f"IPv4, such as {such_as}"
