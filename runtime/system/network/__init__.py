"""The kernel's network: route netlink, addresses, traffic control, counters."""
