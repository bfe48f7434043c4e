"""The page bookkeeping of a decode engine as a formal model, searched by spin, and its counterexamples on real code.

`pages.pml` is the model; docs/model.md says what it found.
"""
