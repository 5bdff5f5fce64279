"""What agents tell each other of their flows."""
