"""Metamorphic fuzz of the log reader: a log that was changed in a known way keeps its answer, or tells none."""
