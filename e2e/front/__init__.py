"""A real nginx with the configuration of a router pod, in front of a router that takes everything and remembers it."""
