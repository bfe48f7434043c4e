"""Decisions: capacity, revisions, gates, plan, rollout, incidents, advisories, verdicts.

Pure: what was observed comes in as values, what is to be done goes out as values. Time and chance are handed in.
May import: `api`. No input or output, no asyncio, no HTTP or Kubernetes client.
"""
