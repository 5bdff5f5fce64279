"""Files that statements name, each read once."""
