"""What a plan has beside its network and its events, each part to and from JSON."""
