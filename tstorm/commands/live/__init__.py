"""Commands that watch a running experiment, reach into it or change it."""
