"""What can keep the stage, or an engine on it, from coming up, in words that say what to do."""


class StageError(Exception):
    """The stage cannot do what was asked; the message is for the person who asked."""


class ApiserverHungError(StageError):
    """The API server is not ready in its time, as in about one start of ten with etcd 3.5: start afresh once."""
