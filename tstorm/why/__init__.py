"""`tstorm why`: when a failure of a recorded run was decided."""
