"""MIG placement: which GPU instances fit on one GPU together, where they go, and what fits instead."""
