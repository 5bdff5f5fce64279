"""What every example must compile to: events, paths at a few times, and the plan's digest."""
