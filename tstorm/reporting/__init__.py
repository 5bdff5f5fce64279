"""Runs as documents for people and programs: Markdown, JSON, CSV, JUnit XML, and the page."""
