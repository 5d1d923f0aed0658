"""Words that views show, as values."""
