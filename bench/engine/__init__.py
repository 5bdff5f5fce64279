"""Measurements of pktd, and what they measure with: namespaces, tprobe, a client."""
