"""Stand-ins for what a pool is made of where no engine can run: the door of the pods is the real one, SGLang is not."""
