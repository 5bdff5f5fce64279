"""Coordinator and agent talk: sealed frames, a channel, requests and answers. And the control
socket of a run."""
