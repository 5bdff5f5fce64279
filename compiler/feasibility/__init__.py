"""Warnings about what is legal and will not work, or not as meant."""
