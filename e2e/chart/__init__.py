"""The Helm chart: rendered by the real `helm`, judged and installed by the real API server."""
