"""gpuplan's output on the programs it is written for: API server, scheduler, controllers, parsers."""
