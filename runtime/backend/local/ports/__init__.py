"""Ports of local hosts: devices, who is attached where, and what may pass."""
