"""What flows would get of a planned network, asked before anything runs."""
