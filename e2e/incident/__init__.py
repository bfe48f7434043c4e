"""The incident that the project exists for, played on real SGLang pairs."""
