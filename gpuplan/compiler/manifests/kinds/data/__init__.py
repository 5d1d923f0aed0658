"""Kinds, as data: these modules hold values and no logic."""
