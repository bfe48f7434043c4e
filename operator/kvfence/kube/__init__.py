"""Talking to the Kubernetes API: server-side apply, watches, leases, conditions of pods.

Carries out, decides nothing. May import: `api`, `domain`, `render`. Not `engine` or `verify`, which stand beside it.
"""
