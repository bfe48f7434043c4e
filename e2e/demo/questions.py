"""What is asked of a pool that is admitted, and what has to come back. Pure but for the client that is handed in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kvfence.domain.capacity import INPUT_MARGIN
from kvfence.verify import markers

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from e2e.demo.client import Said

AT_ONCE_SECONDS = 1.0
OVER_LONG_TOKENS = 1500
ANSWER_TOKENS = 4
COPYING_CHARACTERS, COPYING_DISTANCE = 700, 350
BEGIN_TOKENS = 1
"""The demo's model has one token for each character, and one in front."""


@dataclass(frozen=True)
class Asked:
    """A question, and what came of it."""

    what: str
    said: Said
    came: str
    """What it says, for people."""
    wanted: str
    """What should have come."""
    good: bool


def completion(model: str, prompt: str, tokens: int = ANSWER_TOKENS) -> dict[str, Any]:
    """Return the body of a request for a completion of so many tokens."""
    return {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True}


def longest(cap: int) -> int:
    """Return the longest prompt, in tokens, that is taken under a cap."""
    return cap - INPUT_MARGIN - 1


def ask_all(
    ask: Callable[[str, dict[str, Any] | None], Said], model: str, cap: int, chance: random.Random
) -> list[Asked]:
    """Ask everything, one after the other."""
    (marker,) = markers.draw(1, chance)
    copying = markers.copying_prompt(marker, COPYING_CHARACTERS, COPYING_DISTANCE)

    def send(prompt: str, tokens: int = ANSWER_TOKENS) -> Said:
        return ask("/v1/completions", completion(model, prompt, tokens))

    return [
        judged_models(ask("/v1/models", None), cap),
        judged_marker(send(copying, len(marker)), marker),
        judged_longest(send(markers.filler(longest(cap) - BEGIN_TOKENS)), longest(cap)),
        *(
            judged_refusal(send(markers.filler(tokens - BEGIN_TOKENS)), tokens)
            for tokens in (longest(cap) + 1, OVER_LONG_TOKENS)
        ),
    ]


def judged_models(said: Said, cap: int) -> Asked:
    """Judge the answer to `GET /v1/models`."""
    models = _read(said).get("data")
    first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
    length = first.get("max_model_len")
    return Asked("GET /v1/models", said, f"max_model_len {length}", f"max_model_len {cap}", _ok(said) and length == cap)


def judged_marker(said: Said, marker: str) -> Asked:
    """Judge the answer to a prompt that says a marker once and asks for it."""
    tokens = COPYING_CHARACTERS + BEGIN_TOKENS
    text, counted = _completion(said)
    good = _ok(said) and text == marker and counted == tokens
    came = f"{text!r}, as it stands in the prompt" if good else f"{text!r}, prompt_tokens {counted}"
    return Asked(f"a prompt of {tokens:,} tokens", said, came, f"200 with {marker!r}", good)


def judged_longest(said: Said, tokens: int) -> Asked:
    """Judge the answer to the longest prompt that is taken."""
    _, counted = _completion(said)
    wanted = f"200 with prompt_tokens {tokens}"
    return Asked(f"{tokens:,}, the longest", said, f"prompt_tokens {counted}", wanted, _ok(said) and counted == tokens)


def judged_refusal(said: Said, tokens: int) -> Asked:
    """Judge the answer to a prompt that is too long."""
    refused = said.status is not None and 400 <= said.status < 500
    good = refused and said.seconds < AT_ONCE_SECONDS
    what = f"{tokens:,} tokens" + (", one more" if tokens != OVER_LONG_TOKENS else "")
    return Asked(what, said, _message(said.body) or said.why or "-", f"4xx in less than {AT_ONCE_SECONDS:.0f} s", good)


def _ok(said: Said) -> bool:
    return said.status == 200


def _completion(said: Said) -> tuple[str, int | None]:
    """The text of an answer, and how many tokens its prompt had."""
    found = _read(said)
    choices, usage = found.get("choices"), found.get("usage")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    return str(first.get("text", said.why)), usage.get("prompt_tokens") if isinstance(usage, dict) else None


def _message(body: str) -> str:
    """The words of an error; where a router put an engine's own answer behind its words, those of the engine too."""
    found = _object(body)
    inner = found.get("error")
    message = str((inner.get("message") if isinstance(inner, dict) else None) or found.get("message") or "")
    before, brace, behind = message.partition("{")
    words = _message(brace + behind) if brace else ""
    return f"{before.rstrip()} {words}" if words else message


def _read(said: Said) -> dict[str, Any]:
    return _object(said.body)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
