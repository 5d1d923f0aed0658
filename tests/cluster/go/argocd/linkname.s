// Go takes functions without a body, as that of go:linkname, only beside assembly.
