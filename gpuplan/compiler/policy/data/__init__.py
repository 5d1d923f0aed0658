"""Words for mistakes in documents."""
