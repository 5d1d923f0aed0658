"""Words of views, as values."""
