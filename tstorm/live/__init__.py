"""What is done to a run that goes on."""
