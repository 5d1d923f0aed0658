"""Merge objects as Kubernetes does: strategic merge patches, and server-side apply.

`shape` reads how a schema has its lists and mappings merged, `strategic` lays a patch over an object, and `applied`
compares what is written with a live object. They know schemas and plain data alone, no kinds and no GPUs.
"""
