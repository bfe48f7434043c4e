"""The product shown on a cluster: a pool is applied, and what happens is told as it happens (`make demo`)."""
