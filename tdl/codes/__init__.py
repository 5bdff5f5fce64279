"""Codes of all diagnostics: what each means, with an example; docs/errors.md is made of them."""
