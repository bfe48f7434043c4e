"""Rules of one setting or variable each, for any engine of SGLang (R8, R9, W4, W5, W7 to W9 and W11).

Rows R10 and R11 are not here: they are about kvfence's own plugin, and who asks the doctor need not run it. W6 is about
a router's command line, which no router tells; what shows of it is in `exposure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvfence.domain.diagnosis.hits import Hit
from kvfence.domain.severity import Severity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kvfence.domain.diagnosis.scene import Server

TEST_PREFIXES = ("SGLANG_TEST_", "SGLANG_KV_CANARY_PERTURB_")
TEST_VARIABLES = ("SGLANG_DIAG_BYPASS_HEALTH_GENERATE", "SGLANG_IS_IN_CI")
CANARY_ASSERT = "SGLANG_KV_CANARY_ENABLE_VERIFY_TOKEN_ASSERT"


@dataclass(frozen=True, slots=True)
class Switch:
    """Something that should not be on."""

    id: str
    severity: Severity
    thrown: Callable[[Server], bool]
    text: str
    fix: str


def _setting(name: str) -> Callable[[Server], bool]:
    return lambda server: server.on(name) is True


def _variable(name: str) -> Callable[[Server], bool]:
    return lambda server: server.variable_on(name) is True


def _lora(server: Server) -> bool:
    return server.on("enable_lora") is True or bool(server.settings.get("lora_paths"))


def _canary(mode: str) -> Callable[[Server], bool]:
    return lambda server: server.settings.get("kv_canary") == mode


def _blind_canary(server: Server) -> bool:
    """Without an environment it is not known whether the variable is set."""
    return _canary("log")(server) and bool(server.environment) and not server.variable_on(CANARY_ASSERT)


SWITCHES = (
    Switch(
        "LongerContextForced",
        Severity.HIGH,
        _variable("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"),
        "a context longer than the model has is allowed; positions beyond it run over.",
        "unset SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
    ),
    Switch(
        "LoraBesideClientKeys",
        Severity.MEDIUM,
        _lora,
        "the cache tells a client's extra_key and the name of a LoRA adapter not apart, so that a client can reach "
        "what was cached for an adapter.",
        "Let the proxy in front take extra_key out of every request; if it does so already, this is done.",
    ),
    Switch(
        "CacheReportOn",
        Severity.LOW,
        _setting("enable_cache_report"),
        "answers tell how many tokens came from the cache: whoever asks learns what others have asked.",
        "Give each tenant a cache_salt of its own at the proxy in front, or start it without: --enable-cache-report",
    ),
    Switch(
        "PoolSizedLate",
        Severity.LOW,
        _variable("SGLANG_ENABLE_POST_CAPTURE_KV_SIZING"),
        "the KV pool gets its size after it was first announced: figures early in the log are upper bounds.",
        "Go by the server's URL, or by the line max_total_num_tokens= of its log.",
    ),
    Switch(
        "KvCanaryKills",
        Severity.MEDIUM,
        _canary("raise"),
        "the KV canary stops the whole server at the first mismatch.",
        "Start it with: --kv-canary log",
    ),
    Switch(
        "KvCanaryBlind",
        Severity.LOW,
        _blind_canary,
        "the KV canary does not see pages of other requests.",
        f"export {CANARY_ASSERT}=1",
    ),
    Switch(
        "CustomLogitProcessor",
        Severity.HIGH,
        _setting("enable_custom_logit_processor"),
        "whoever may send a prompt may send code, and the engine runs it.",
        "Start it without: --enable-custom-logit-processor",
    ),
    Switch(
        "EncoderApart",
        Severity.MEDIUM,
        lambda server: server.on("encoder_only") is True or server.on("language_only") is True,
        "encoder and language model talk over sockets that had faults through which code could be run.",
        "Let nobody but the two reach their ports (a NetworkPolicy), and: pip install 'sglang>=0.5.23'",
    ),
    Switch(
        "HeadersOverrideBodies",
        Severity.MEDIUM,
        _variable("SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES"),
        "headers of a request replace fields of its body on /generate, past a proxy that checks bodies alone.",
        "unset SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES",
    ),
)


def switches(server: Server) -> Iterator[Hit]:
    """Each that is on."""
    for switch in SWITCHES:
        if switch.thrown(server):
            yield Hit(switch.id, switch.severity, server.source, switch.text, switch.fix)


def switches_for_tests(server: Server) -> Iterator[Hit]:
    """R8. Names of variables are SGLang's own; no value is quoted."""
    names = [name for name in server.environment if name.startswith(TEST_PREFIXES) or name in TEST_VARIABLES]
    thrown = sorted(name for name in names if server.variable_on(name))
    if thrown:
        text = f"switches for tests of SGLang are set ({', '.join(thrown)}): they put in faults or change what it does."
        yield Hit("TestSwitchOn", Severity.HIGH, server.source, text, f"unset {' '.join(thrown)}")
