"""Where a plan's bytes lie: directories that appear whole, and shards."""
