"""The page of a run that goes on, served on this machine; needs the extra `[ui]`."""
