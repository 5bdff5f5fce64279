"""`tstorm run --seeds`: an experiment at every point of a grid, kept in one directory."""
