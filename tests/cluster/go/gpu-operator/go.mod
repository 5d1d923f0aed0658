module gpu-operator

go 1.26

require github.com/NVIDIA/gpu-operator v0.0.0-20250917190837-d73a0086a6ba
