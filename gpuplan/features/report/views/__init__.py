"""The report: one HTML file that shows a platform, or what a merge changes in it."""
