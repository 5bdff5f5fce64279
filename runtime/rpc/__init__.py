"""Coordinator and agent talk: sealed frames, a channel, requests and answers."""
