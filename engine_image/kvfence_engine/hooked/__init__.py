"""Puts the defences of `integrity/` into a scheduler of SGLang 0.5.23: one module for each place where they act."""
