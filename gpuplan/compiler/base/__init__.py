"""Code that knows neither GPUs nor Kubernetes: values, diagnostics, words, files by handles, plain objects."""
