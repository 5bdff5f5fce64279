"""What the driver does until programs run: setups, starts, readiness."""
