"""`tstorm measure`: what lies between real hosts, as the `path` statements of an experiment."""
