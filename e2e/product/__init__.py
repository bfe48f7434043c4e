"""kvfence itself on the stage: its images, made of this checkout."""
