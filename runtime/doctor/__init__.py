"""What this machine can do for a run, found out by trying."""
