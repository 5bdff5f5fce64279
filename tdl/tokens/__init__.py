"""Text to tokens: the words of the language, and what kind of token each is."""
