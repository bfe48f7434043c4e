"""Markers: text that no one else has, planted in some requests and looked for in the answers to others.

A marker is drawn from 32 characters, none twice. So a model that repeats what it sees knows after one character of it
where it is, and every run of a marker stands in that marker alone. Prompts carry it behind a lead, ` SECRET-`;
whoever asks ends its own prompt with the lead, and an engine that reads another request's KV goes on with the marker.

What counts as found is a run of six of its characters: a leak often starts in the middle of a marker or breaks off.
That cannot happen by chance. A text that knows nothing of the marker would have to hit one of its runs: for each
place in the text and each run that is at most 32^-6, one in a thousand million, even if the text is made of the
markers' characters alone; `false_alarm_bound` adds them up. That holds while nobody can know a marker: draw them with
`random.SystemRandom()` wherever users can reach the engine, or a user could print one and have the pool cut. A seeded
generator is for tests.

Pure: no clock, no IO; the caller brings the chance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Collection, Iterable

CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without I, O, 0 and 1, which people mix up when they read a marker aloud."""

LEAD = " SECRET-"
RUN = 6
LENGTH = 12

WORDS = (
    "the",
    "quick",
    "river",
    "over",
    "a",
    "lazy",
    "hill",
    "while",
    "seven",
    "potions",
    "near",
    "old",
    "castle",
    "walls",
)
"""Of the text around a lead: lower case, so that no run of a marker can stand in it."""


def draw(count: int, chance: random.Random, length: int = LENGTH) -> tuple[str, ...]:
    """Return markers of which no two share a run, so that whatever is found belongs to one of them.

    Args:
        count: how many; thousands are fine.
        chance: see the module for which one.
        length: characters of each, from `RUN` to 32.

    Raises:
        ValueError: when `length` is out of range or `count` negative.
    """
    if not RUN <= length <= len(CHARACTERS):
        raise ValueError(f"a marker has {RUN} to {len(CHARACTERS)} characters, not {length}")
    if count < 0:
        raise ValueError(f"cannot draw {count} markers")
    drawn: list[str] = []
    taken: set[str] = set()
    while len(drawn) < count:
        marker = "".join(chance.sample(CHARACTERS, length))
        runs = _runs(marker)
        if taken.isdisjoint(runs):
            taken |= runs
            drawn.append(marker)
    return tuple(drawn)


def planting_prompt(marker: str, characters: int) -> str:
    """Return a prompt of exactly this length that says the marker over and over, each time whole.

    Raises:
        ValueError: when there is no room for it twice: said once, there is nothing to repeat.
    """
    once = LEAD + marker
    times = characters // len(once)
    if times < 2:
        raise ValueError(f"{characters} characters are too few: saying the marker twice takes {2 * len(once)}")
    return filler(characters - times * len(once)) + once * times


def copying_prompt(marker: str, characters: int, distance: int) -> str:
    """Return a prompt that says the marker once and ends with the lead: an engine that works goes on with the marker.

    Args:
        marker: not in the prompt otherwise.
        characters: length of the whole prompt.
        distance: characters from the marker's first to the end of the prompt; what the engine must look back.

    Raises:
        ValueError: when the distance does not fit between a lead before the marker and one at the end.
    """
    between = distance - len(marker) - len(LEAD)
    before = characters - distance - len(LEAD)
    if between < 0 or before < 0:
        raise ValueError(f"a marker {distance} characters before the end does not fit into {characters} characters")
    return filler(before) + LEAD + marker + filler(between) + LEAD


def copying(marker: str, characters: int) -> str:
    """Return a copying prompt with the marker as far ahead of its end as there is room: to be read back across pages.

    Raises:
        ValueError: when there is no room for it.
    """
    return copying_prompt(marker, characters, characters - len(LEAD))


def asking_prompt(tokens: int, begin_tokens: int = 1) -> str:
    """Return a prompt that says no marker and ends with the lead: whoever answers with one has read another's KV.

    Args:
        tokens: how many it is for a tokenizer of one token per ASCII character, as that of the copy model. For
            another tokenizer this is the number of characters, and the engine's count decides.
        begin_tokens: what the tokenizer puts in front by itself.

    Raises:
        ValueError: when not even the lead fits.
    """
    room = tokens - begin_tokens - len(LEAD)
    if room < 0:
        raise ValueError(f"{tokens} tokens are too few: the lead and the begin take {len(LEAD) + begin_tokens}")
    return filler(room) + LEAD


def cut_asking_prompt(tokens: int, kept: int, begin_tokens: int = 1) -> str:
    """Return an asking prompt for an engine that cuts prompts: what it keeps breaks off within a lead, before the dash.

    The kept part has a whole lead too, so that the engine goes on with the dash. What followed a dash is then to be
    found in the kept part once, and in the pages behind it, if these are another request's, as often as that one said
    its marker.

    Args:
        tokens: of the whole prompt, as for `asking_prompt`.
        kept: how many of them the engine keeps, from the front.
        begin_tokens: what the tokenizer puts in front by itself; part of both counts.

    Raises:
        ValueError: when two leads do not fit into what is kept, or a third not behind it.
    """
    between = kept - begin_tokens - len(LEAD) - len(LEAD[:-1])
    behind = tokens - kept - len(LEAD)
    if between < 0 or behind < 0:
        raise ValueError(f"no room for the leads in {tokens} tokens of which {kept} are kept")
    return LEAD + filler(between) + LEAD[:-1] + filler(behind) + LEAD


def filler(characters: int) -> str:
    """Return plain text of exactly this length."""
    sentence = " ".join(WORDS) + " "
    return (sentence * (characters // len(sentence) + 1))[:characters]


def found(text: str, planted: Iterable[str]) -> tuple[str, ...]:
    """Return those of the planted markers of which a run stands in the text, in the order in which they were
    planted.
    """
    said = {text[i : i + RUN] for i in range(len(text) - RUN + 1)}
    return tuple(marker for marker in planted if not said.isdisjoint(_runs(marker)))


def false_alarm_bound(characters: int, planted: Collection[str]) -> float:
    """Return the greatest probability with which a text that knows none of the markers holds a run of one.

    Args:
        characters: length of the text.
        planted: the markers looked for.
    """
    places = max(0, characters - RUN + 1)
    runs = sum(len(marker) - RUN + 1 for marker in planted)
    return min(1.0, places * runs * float(len(CHARACTERS)) ** -RUN)


def _runs(marker: str) -> set[str]:
    return {marker[i : i + RUN] for i in range(len(marker) - RUN + 1)}
