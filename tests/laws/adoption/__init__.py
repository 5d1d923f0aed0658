"""Clusters that people have, what their first sync makes of them, and whether the import says so."""
