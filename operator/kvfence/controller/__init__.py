"""The loop of a pool: gather what is, decide, apply, report; the work queue and the probes in the background.

May import: everything of kvfence except `app`.
"""
