"""Changes that collectors make which keep more than a line's text: journald, Loki, clouds, a cluster's scheduler."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

BEGUN = datetime(2026, 11, 30, tzinfo=UTC)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _clock(text: str) -> Iterable[tuple[datetime, str]]:
    """Yield each line with its collector's time, which goes on by two minutes."""
    for index, line in enumerate(_lines(text)):
        yield BEGUN + timedelta(minutes=2 * index), line


def _of_each(text: str, form: Callable[[datetime, str], Any], *, newest_first: bool = False) -> str:
    rows = [json.dumps(form(time, line)) + "\n" for time, line in _clock(text)]
    return "".join(reversed(rows) if newest_first else rows)


def journal(rng: random.Random, text: str) -> str:
    """`journalctl` in its other forms, with the host and without it: keeps."""
    form = rng.choice([
        "%b %d %H:%M:%S.%f ", "%a %Y-%m-%d %H:%M:%S UTC ", "%Y-%m-%dT%H:%M:%S.%f+0000 ", "%s.%f ", "%b %d %H:%M:%S ",
    ])  # fmt: skip
    unit = rng.choice(["gpu01 sglang[1234]: ", "sglang[1234]: ", "gpu-1.x python3.12[9]: ", "sglang.service[7]: "])
    return "".join(f"{time.strftime(form)}{unit}{line}\n" for time, line in _clock(text))


def journal_since_boot(rng: random.Random, text: str) -> str:
    """`journalctl -o short-monotonic`: keeps."""
    return "".join(f"[{i * 2.5 + 9:12.6f}] gpu01 sglang[1234]: {line}\n" for i, line in enumerate(_lines(text)))


def syslog_protocol(rng: random.Random, text: str) -> str:
    """As it goes over the wire, by RFC 5424: keeps."""
    return "".join(f"<30>1 {time:%Y-%m-%dT%H:%M:%S}Z gpu01 sglang 12 - - {line}\n" for time, line in _clock(text))


def journal_json(rng: random.Random, text: str) -> str:
    """`journalctl -o json`, which gives a line with colours in it as its bytes: keeps."""
    octets = rng.random() < 0.5

    def form(time: datetime, line: str) -> dict[str, Any]:
        message = list(f"\x1b[1m{line}\x1b[0m".encode()) if octets and line else line
        stamp = str(int(time.timestamp() * 1e6))
        return {"MESSAGE": message, "__REALTIME_TIMESTAMP": stamp, "_SYSTEMD_UNIT": "sglang.service", "PRIORITY": "6"}

    return _of_each(text, form)


def loki(rng: random.Random, text: str) -> str:
    """`logcli -o jsonl`, with the newest first or last: keeps."""
    labels = {"app": "sglang", "container": "sglang", "detected_level": "info", "stream": "stderr"}
    form = rng.choice(["%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%S+00:00"])
    return _of_each(
        text,
        lambda time, line: {"labels": labels, "line": line, "timestamp": time.strftime(form)},
        newest_first=rng.random() < 0.5,
    )


def loki_answer(rng: random.Random, text: str) -> str:
    """What Loki's own API answers: keeps."""
    values = [[str(int(time.timestamp()) * 10**9), line] for time, line in _clock(text)]
    stream = {"stream": {"pod": "glm-0", "container": "sglang"}, "values": values[:: rng.choice([1, -1])]}
    return json.dumps({"status": "success", "data": {"resultType": "streams", "result": [stream]}}) + "\n"


def cloudwatch(rng: random.Random, text: str) -> str:
    """CloudWatch's answer, or a line of it each: keeps."""
    events = [{"timestamp": int(time.timestamp() * 1000), "message": line} for time, line in _clock(text)]
    if rng.random() < 0.5:
        return json.dumps({"events": events, "nextForwardToken": "f/1"}) + "\n"
    return "".join(json.dumps({**event, "logStreamName": "a/b"}) + "\n" for event in events)


def elastic(rng: random.Random, text: str) -> str:
    """Elastic's hits: keeps."""
    way = rng.randrange(3)

    def form(time: datetime, line: str) -> dict[str, Any]:
        stamp, pod = f"{time:%Y-%m-%dT%H:%M:%S}.000Z", {"pod": {"name": "glm-0"}}
        if way == 0:
            return {"_index": "x", "_source": {"@timestamp": stamp, "message": line, "kubernetes": pod}}
        if way == 1:
            return {"@timestamp": stamp, "event": {"original": line}, "kubernetes": pod}
        return {"fields": {"@timestamp": [stamp], "message": [line], "kubernetes.pod.name": ["glm-0"]}}

    return _of_each(text, form, newest_first=rng.random() < 0.5)


def clouds(rng: random.Random, text: str) -> str:
    """Google's and Datadog's records, and those of OpenTelemetry: keeps."""
    way = rng.randrange(4)

    def form(time: datetime, line: str) -> dict[str, Any]:
        stamp = f"{time:%Y-%m-%dT%H:%M:%S}.123456789Z"
        labels = {"pod_name": "glm-0", "container_name": "sglang"}
        if way == 0:
            return {"textPayload": f"{line}\n", "timestamp": stamp, "resource": {"type": "k8s", "labels": labels}}
        if way == 1:
            return {"jsonPayload": {"message": line}, "timestamp": stamp, "resource": {"labels": labels}}
        if way == 2:
            tags = ["pod_name:glm-0", "env:x"]
            return {"id": "A", "attributes": {"message": line, "timestamp": stamp, "tags": tags, "service": "s"}}
        return {"timeUnixNano": str(int(time.timestamp()) * 10**9), "body": line, "attributes": {"k8s.pod.name": "g"}}

    return _of_each(text, form)


def slurm(rng: random.Random, text: str) -> str:
    """`srun --label`: keeps."""
    front = rng.choice(["0: ", "12: ", " 3: ", "00: "])
    return "".join(f"{front}{line}\n" for line in _lines(text))


def texts_of_docker(rng: random.Random, text: str) -> str:
    """Docker's own file, with several lines in each record and its escapes: keeps or loses."""
    rows, lines, minute = [], _lines(text), 0
    while lines:
        size = rng.randint(1, 40)
        time = f"{BEGUN + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S}.1Z"
        record = json.dumps({"log": "\n".join(lines[:size]) + "\n", "stream": "stdout", "time": time})
        rows.append(record.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026") + "\n")
        lines, minute = lines[size:], minute + 2
    return "".join(rows)


WRAPPINGS = (
    journal, journal_since_boot, syslog_protocol, journal_json, loki, loki_answer, cloudwatch, elastic, clouds, slurm,
    texts_of_docker,
)  # fmt: skip

TIMED = (journal, syslog_protocol, journal_json, loki, loki_answer, cloudwatch, elastic, clouds, texts_of_docker)
"""They tell a time of their own, which no later change may contradict."""

REVERSING = (loki, loki_answer, elastic)
"""They may hand out the newest first: no later change may stamp that order."""
