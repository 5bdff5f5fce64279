"""What a run came to: summary, report, comparison."""
