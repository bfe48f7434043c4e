"""The objects that a pool is made of, one module per kind: deployment, service, router, network policy and so on.

Pure: a function takes what was decided and returns the object.
May import: `api`, `domain`. No input or output, no asyncio, no HTTP or Kubernetes client.
"""
