"""How late a run was, and whether its result can be believed: figures, bounds, verdict."""
