"""The way from documents to `out/`. It knows no feature: `gpuplan/handed_in.py` lists the additions of features."""
