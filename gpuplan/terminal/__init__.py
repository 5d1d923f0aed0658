"""Modules that commands share: options, files that are named, findings, plans, tables and pictures."""
