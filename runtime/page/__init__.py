"""report.html: one page that shows a run, from what its directory has."""
