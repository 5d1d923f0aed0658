"""What gpuplan prints is done to the letter, to its end."""
