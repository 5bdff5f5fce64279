"""`tstorm compare`: what differs between runs or campaigns, and how sure that is."""
