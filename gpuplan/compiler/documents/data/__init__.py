"""Words for what cannot be read."""
