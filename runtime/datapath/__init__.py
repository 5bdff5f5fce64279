"""Clients of the programs that carry packets, the choice between them, their counters."""
