"""The report in Debian's Chromium."""
