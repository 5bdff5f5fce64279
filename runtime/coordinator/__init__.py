"""Brings the agents of a run together: who is where, one start for all, whose clock says what."""
