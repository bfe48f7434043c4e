"""Rules about the halves of a pair: their releases, what they must have in common, and the checksum (R1, R3 to R5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kvfence.domain.advisories.judging import release
from kvfence.domain.diagnosis.hits import UPGRADE, Hit
from kvfence.domain.diagnosis.limits import STUB_RETIRED
from kvfence.domain.severity import Severity
from kvfence.domain.versions import CHECKSUM_RELIABLE, OLDEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from packaging.version import Version

    from kvfence.domain.diagnosis.scene import Scene, Server

CHECKSUM = "disaggregation_enable_kv_checksum"
CHECKSUM_FLAG = "--disaggregation-enable-kv-checksum"
TRUNCATE = "allow_auto_truncate"

ALIKE = (
    "served_model_name",
    "revision",
    "model_path",
    "tokenizer_path",
    "tokenizer_mode",
    "chat_template",
    "page_size",
    "kv_cache_dtype",
    "dtype",
    "quantization",
    "reasoning_parser",
    "tool_call_parser",
    "enable_multimodal",
    "limit_mm_data_per_request",
    "disaggregation_transfer_backend",
    "speculative_algorithm",
    "dcp_size",
    "attn_cp_size",
)
"""Settings in which halves of a pair must not differ: lengths, layouts or texts would differ with them (R4, W2)."""

_PATHS = frozenset({"model_path", "tokenizer_path"})
"""Compared by their last part: the same model may be mounted elsewhere."""
_NOT_SHOWN = frozenset({"chat_template", *_PATHS})
SHOWN = 48
"""Characters of a setting that a message quotes."""


def too_old(server: Server) -> Iterator[Hit]:
    """R1: what a pair of this release does with a prompt that does not fit."""
    if not server.in_pair or not server.older_than(OLDEST):
        return
    grave = server.older_than(STUB_RETIRED)
    text = f"SGLang {server.release} runs as a half of a pair. "
    if grave:
        text += "This release answers a prompt that does not fit with status 200 and other users' text."
    else:
        text += "This release refuses a prompt that does not fit late, and has no checksum of what is handed over."
    yield Hit("EngineTooOldForPairs", Severity.CRITICAL if grave else Severity.HIGH, server.source, text, UPGRADE)


def versions_differ(scene: Scene) -> Iterator[Hit]:
    """R1: releases do not understand each other's notices that a request was given up."""
    told = {_version(server): server for server in scene.halves if server.first.version is not None}
    if len(told) > 1 and scene.pairs:
        text = (
            f"halves of a pair run different versions of SGLang ({', '.join(sorted(told))}). They do not agree on how "
            "memory is given back when a request is given up, so that it may be written to while another uses it."
        )
        yield Hit("VersionsDiffer", Severity.HIGH, _both(scene), text, UPGRADE)


def auto_truncate(server: Server) -> Iterator[Hit]:
    """R3: each half cuts a prompt to its own limit."""
    if server.on(TRUNCATE) is not True:
        return
    fix = "Start it again without: --allow-auto-truncate"
    if server.in_pair:
        text = (
            "prompts that are too long are cut, and each half of a pair cuts to its own limit. Where these differ, "
            "decode reads memory that was not written for this request, and the client sees status 200."
        )
        yield Hit("AutoTruncateInPair", Severity.CRITICAL, server.source, text, fix)
    else:
        text = "prompts that are too long are cut without a word, and the client sees status 200 and no hint."
        yield Hit("AutoTruncate", Severity.LOW, server.source, text, fix)


def roles_differ(scene: Scene) -> Iterator[Hit]:
    """R4: each setting once, whichever halves differ in it."""
    for name in ALIKE:
        told = [(one, _comparable(name, one.settings[name])) for one in scene.halves if name in one.settings]
        yield from _differing(scene, name, told)
    lengths = [(one, one.first.context_length) for one in scene.halves if one.first.context_length is not None]
    yield from _differing(scene, "context_length", list(lengths))


def _differing(scene: Scene, name: str, told: list[tuple[Server, Any]]) -> Iterator[Hit]:
    if len({_key(value) for _, value in told}) < 2 or len({server.role for server, _ in told}) < 2:
        return
    said = "" if name in _NOT_SHOWN else ": " + ", ".join(f"{server.role} {_short(value)}" for server, value in told)
    text = (
        f"halves of a pair differ in {name}{said}. One half then reads what the other did not write so, or counts a "
        "prompt differently."
    )
    fix = f"Start all of them with the same: {_flag(name)}"
    yield Hit("RolesDiffer", Severity.HIGH, _both(scene), text, fix)


def checksum(scene: Scene) -> Iterator[Hit]:
    """R5, for those releases that have a checksum at all; older ones are told to be too old."""
    told = [one for one in scene.halves if one.on(CHECKSUM) is not None and not one.older_than(OLDEST)]
    off = [one for one in told if one.on(CHECKSUM) is False]
    fix = f"{UPGRADE}\nand start both with: {CHECKSUM_FLAG}"
    if off and len(off) < len(told):
        text = "the checksum of what is handed over is on in one half and off in the other, so that nothing is checked."
        for server in off:
            yield Hit("ChecksumOneSided", Severity.HIGH, server.source, text, fix)
        return
    for server in off:
        text = "the checksum of what prefill hands over to decode is off: a faulty transfer is answered from."
        yield Hit("ChecksumOff", Severity.MEDIUM, server.source, text, fix)
    for server in told:
        if server.on(CHECKSUM) and server.older_than(CHECKSUM_RELIABLE):
            text = (
                f"the checksum of SGLang {server.release} is judged by each rank for itself: where they disagree the "
                "engine hangs, and after memory ran short it refuses sound answers."
            )
            yield Hit("ChecksumNotReliable", Severity.MEDIUM, server.source, text, UPGRADE)


def tensor_parallel(scene: Scene) -> Iterator[Hit]:
    """R4 with R5: other widths are allowed, and with them the checksum lets everything through unverified."""
    wide = [(one, one.settings.get("tp_size")) for one in scene.halves if one.on(CHECKSUM) is True]
    told = {size for _, size in wide if type(size) is int}
    if len(told) > 1 and scene.pairs:
        text = (
            "the halves of a pair run with different --tp-size. The checksum then does not fit, and requests are "
            "admitted unverified with one warning in decode's log."
        )
        fix = "Start both halves with the same: --tp-size"
        yield Hit("ChecksumSkipped", Severity.MEDIUM, _both(scene), text, fix)


def _version(server: Server) -> str:
    text = server.first.version or ""
    version: Version | None = release(text)
    return str(version) if version is not None else _short(text)


def _both(scene: Scene) -> str:
    """All halves in one place, since the finding is about them together."""
    names = [server.source for server in scene.halves]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _comparable(name: str, value: Any) -> Any:
    return value.rstrip("/").rpartition("/")[2] if name in _PATHS and isinstance(value, str) else value


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _short(value: Any) -> str:
    """Settings come from outside: one line, and not a long one."""
    text = value if isinstance(value, str) else _key(value)
    return "".join(character if character.isprintable() else " " for character in text[:SHOWN])


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
