"""Options and arguments: types of values, and what several commands declare alike."""
