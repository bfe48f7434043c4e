"""A cap changes what an engine checks and what it says, and a lower one more so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kvfence_engine.cap import SchedulerCap, TokenizerCap


def manager() -> Any:
    """As SGLang's tokenizer manager of a server with 4,096 tokens of context and a pool of 1,024."""
    return SimpleNamespace(
        context_len=4096, max_req_input_len=1018, num_reserved_tokens=2, model_config=SimpleNamespace(context_len=4096)
    )


def test_before_a_cap_the_scheduler_s_own_limit_holds_in_the_tokenizer() -> None:
    cap = TokenizerCap(manager(), {})
    assert cap.longest_prompt() == 1017


def test_the_http_process_checks_and_tells_the_cap() -> None:
    tokenizer, info = manager(), {"max_req_input_len": 1018}
    cap = TokenizerCap(tokenizer, info)
    for tokens in (1000, 500, 800):  # that it only goes down is the launcher's business
        cap.apply(tokens)
        assert cap.longest_prompt() == tokens - 7
        assert (tokenizer.context_len, tokenizer.model_config.context_len) == (tokens, tokens)
        assert tokenizer.max_req_input_len == info["max_req_input_len"] == tokens - 6
        told: dict[str, Any] = {"context_length": 4096}
        cap.tell(told)
        assert told == {"context_length": tokens}


def test_reserved_tokens_count_as_sglang_counts_them() -> None:
    cap = TokenizerCap(manager(), {})
    assert cap.tokens([1, 2, 3]) == 5
    assert cap.tokens(None) == 2


def test_a_rank_checks_the_cap_and_never_more_than_it_had() -> None:
    scheduler = SimpleNamespace(
        max_req_len=1023, max_req_input_len=1018, beam_coordinator=SimpleNamespace(max_req_len=1023)
    )
    cap = SchedulerCap(scheduler)
    for tokens, limits in ((1000, (999, 994)), (4096, (1023, 1018))):
        cap.apply(tokens)
        assert (scheduler.max_req_len, scheduler.max_req_input_len) == limits
        assert scheduler.beam_coordinator.max_req_len == limits[0]
    told: dict[str, Any] = {}
    cap.tell(told)
    assert told == {"context_length": 4096}
