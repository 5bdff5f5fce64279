"""Clients of the programs that carry packets, and their counters."""
