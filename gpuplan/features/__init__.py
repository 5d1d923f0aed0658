"""The questions on a platform, or on files of others, beside compiling it: one folder for each question."""
