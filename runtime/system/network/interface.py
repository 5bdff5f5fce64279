"""What an instance's interface is called and which prefixes the experiment has on it."""

from __future__ import annotations

INTERFACE = "eth0"
IPV4_PREFIX = 16  # 10.77.0.0/16
IPV6_PREFIX = 64  # fd77:7473::/64
