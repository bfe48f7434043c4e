"""Which defences an engine has on, and what a finding of each leads to."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import Enum


class Mode(str, Enum):
    """What a defence does; the words are those of `spec.integrity` of an InferencePool."""

    ENFORCE = "Enforce"
    """A finding ends its request, and an engine that cannot have the defence does not start."""
    OBSERVE = "Observe"
    """A finding is counted and told, and the request goes on."""
    DISABLED = "Disabled"


@dataclass(frozen=True)
class Modes:
    """One for each defence of this package."""

    page_tagging: Mode = Mode.DISABLED
    page_scrubbing: Mode = Mode.DISABLED
    coverage: Mode = Mode.DISABLED

    @property
    def any_on(self) -> bool:
        """Whether there is anything to do."""
        return any(mode is not Mode.DISABLED for mode in (self.page_tagging, self.page_scrubbing, self.coverage))

    @property
    def any_enforced(self) -> bool:
        """Whether an engine that cannot have all that is asked for must not start."""
        return Mode.ENFORCE in (self.page_tagging, self.page_scrubbing, self.coverage)


def encode(modes: Modes) -> str:
    """Return what `decode` reads."""
    return json.dumps(asdict(modes))


def decode(text: str) -> Modes:
    """Return the modes that a text names.

    Raises:
        ValueError: when it is not what `encode` makes of some.
    """
    try:
        said = json.loads(text)
        return Modes(**{field.name: Mode(said.pop(field.name)) for field in fields(Modes)}, **said)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError("it does not name one mode for each defence") from error
