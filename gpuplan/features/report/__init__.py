"""The platform as one page: `gpuplan report`."""
