"""The program: handlers of kopf, command line, settings, metrics endpoint. Wires parts together, decides nothing.

May import: everything of kvfence. Nothing imports it.
"""
