"""Routes of a plan: the core of a topology, the table of next hops, its changes."""
