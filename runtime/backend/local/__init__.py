"""Hosts that are namespaces of this machine, and what runs on them."""
