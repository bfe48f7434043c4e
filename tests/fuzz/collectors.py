"""Changes that collectors of logs make: what they put in front of lines, and in which order they hand them out."""

from __future__ import annotations

import json
import random
import re

from tests.fuzz.judging import OTHER, OTHER_CONTEXT, OTHER_POOL

_STAMPED = re.compile(r"\s*\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*\]")


def _each(text: str, front: str) -> str:
    return "".join(front + line + "\n" for line in text.removesuffix("\n").split("\n"))


def kubectl(rng: random.Random, text: str) -> str:
    """`kubectl logs --prefix`: keeps."""
    return _each(text, rng.choice(["[pod/glm-7d9f/sglang] ", "[pod/x-0/main] "]))


def beside_another(rng: random.Random, text: str) -> str:
    """`kubectl logs` of two engines at once: keeps, for both."""
    summary = f"max_total_num_tokens={OTHER_POOL}, chunked_prefill_size=8192, context_len={OTHER_CONTEXT}, x=1"
    others = [f"[{OTHER}/x] Load weight begin. avail mem=9 GB", f"[{OTHER}/x] {summary}", f"[{OTHER}/x] Killed"]
    lines = _each(text, "[pod/this/x] ").split("\n")
    places = sorted(rng.randrange(len(lines)) for _ in others)
    for place, line in reversed(list(zip(places, others, strict=True))):
        lines.insert(place, line)
    return "\n".join(lines)


def compose(rng: random.Random, text: str) -> str:
    """`docker compose logs`: keeps."""
    return _each(text, rng.choice(["sglang-1  | ", "llm_server-2 | "]))


def stern(rng: random.Random, text: str) -> str:
    """`stern`: keeps or loses, since bare lines cannot be told from words."""
    return _each(text, "glm-7d9f-abc sglang ")


def syslog(rng: random.Random, text: str) -> str:
    """`journalctl`: keeps."""
    front = rng.choice(["Nov 30 22:45:34 gpu01 sglang[1234]: ", "Nov  3 02:45:34 gpu01 docker[77]: "])
    return _each(text, front)


def _timed(text: str, form: str) -> str:
    """Put a stamp in front of each line: the collector's clock goes on by two minutes."""
    lines = text.removesuffix("\n").split("\n")
    return "".join(form.format(i // 30 % 24, i * 2 % 60) + line + "\n" for i, line in enumerate(lines))


def journal_iso(rng: random.Random, text: str) -> str:
    """`journalctl -o short-iso`: keeps."""
    return _timed(text, "2026-11-30T{:02}:{:02}:34+0000 gpu01 sglang[1234]: ")


def stamps(rng: random.Random, text: str) -> str:
    """`docker logs -t`: keeps."""
    return _timed(text, "2026-09-23T{:02}:{:02}:08.123456789Z ")


def cri(rng: random.Random, text: str) -> str:
    """The file that containerd writes: keeps."""
    return _timed(text, "2026-09-23T{:02}:{:02}:08.295824642Z stdout F ")


def marks(rng: random.Random, text: str) -> str:
    """Pasted with a mark in front of each line: keeps."""
    return _each(text, rng.choice(["# ", "// ", "> ", "* ", "| ", "&gt; ", ">> ", "    ", "\t", "#", ">"]))


def numbered(rng: random.Random, text: str) -> str:
    """`grep -n` or `cat -n`: keeps or loses."""
    form = rng.choice(["{}:", "{:6d}\t"])
    return "".join(form.format(i + 1) + line + "\n" for i, line in enumerate(text.removesuffix("\n").split("\n")))


def docker_json(rng: random.Random, text: str) -> str:
    """Docker's own file: keeps."""
    lines = text.removesuffix("\n").split("\n")
    times = (f"2026-09-23T{i // 30 % 24:02}:{i * 2 % 60:02}:01.1Z" for i in range(len(lines)))
    return "".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": time}, ensure_ascii=rng.random() < 0.5) + "\n"
        for line, time in zip(lines, times, strict=True)
    )


def collector_json(rng: random.Random, text: str) -> str:
    """A collector's JSON: keeps."""
    name = rng.choice(["message", "msg", "log"])
    more: dict[str, object] = rng.choice(
        [{}, {"level": "info"}, {"kubernetes": {"pod_name": "glm-0", "container_name": "sglang"}}]
    )
    return "".join(json.dumps({**more, name: line}) + "\n" for line in text.removesuffix("\n").split("\n"))


def json_of_all(rng: random.Random, text: str) -> str:
    """All of it is one string of JSON: keeps or loses."""
    return json.dumps({"log": text}) + "\n"


def one_line(rng: random.Random, text: str) -> str:
    """Line ends were replaced: keeps or loses."""
    return text.removesuffix("\n").replace("\n", rng.choice([" \u23ce ", "\\n", "\\r\\n"])) + "\n"


def newest_first(rng: random.Random, text: str) -> str:
    """Sorted with the newest first, where each line tells its time: keeps or loses."""
    lines = [line for line in text.split("\n") if line]
    return "\n".join(reversed(lines)) + "\n" if all(map(_STAMPED.match, lines)) else text


def shuffled(rng: random.Random, text: str) -> str:
    """In no order, where each line tells its time: keeps or loses."""
    lines = [line for line in text.split("\n") if line]
    if not all(map(_STAMPED.match, lines)):
        return text
    rng.shuffle(lines)
    return "\n".join(lines) + "\n"


COLLECTORS = (
    kubectl, beside_another, compose, stern, syslog, journal_iso, stamps, cri, marks, numbered, docker_json,
    collector_json, json_of_all, one_line, newest_first, shuffled,
)  # fmt: skip

STAMPING = (syslog, journal_iso, stamps, cri, docker_json)
"""They tell a time of their own, which no later change may contradict."""

SORTING = (newest_first, shuffled)
