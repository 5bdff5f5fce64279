"""The Thunderstorm description language: text to syntax tree, and back."""
