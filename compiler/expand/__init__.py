"""The walk through time: statements of a model become the events of a timeline."""
