"""From documents to `out/`. It knows no feature: what these add is handed in (`gpuplan/handed_in.py`)."""
