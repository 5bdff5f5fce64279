"""Sharing: demands, shares, limits; the loop that does it."""
