"""`tstorm shrink`: the shortest experiment found that still fails as a run did."""
