"""Admission: what the API server refuses of tenants' work, each rule said once and read by all that need it."""
