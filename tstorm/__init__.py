"""The command line: thin commands over `tdl`, `compiler` and `runtime`. Nothing imports it."""
