"""What is asked of a platform, or of the files of others, beside compiling it: one folder for each question."""
