"""Collapsed paths of one host: what they need, and what its datapath is told."""
