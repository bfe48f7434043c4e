"""The images that users get, built from their Dockerfiles: a job of its own, `make images`."""
