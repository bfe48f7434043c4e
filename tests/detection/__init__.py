"""Measures how often the canary's checks see a leak that happens at random, beside what the formula says.

    python -m tests.detection             # draws docs/images/detection.svg anew, in some minutes
    python -m tests.detection --runs 40   # rougher, for a look

Each run is a whole check against a stand-in whose flaw strikes each question with some probability.
"""
