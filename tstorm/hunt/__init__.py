"""`tstorm hunt`: storms within the bounds of an experiment's `hunt`, and what they find."""
