"""Changes to what stands in a log: lines that come in, that come twice, that are written in another way."""

from __future__ import annotations

import html
import random
import re

STAMP = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
NOISE = (
    '[2026-08-27 03:46:40] INFO:     127.0.0.1:41234 - "GET /health HTTP/1.1" 200 OK',
    'INFO:     10.0.0.7:51002 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "I0325 09:32:23.100996  7990 client_metric.cpp:76] Client metrics enabled (default enabled)",
    "Loading safetensors checkpoint shards:  50% Completed | 7/14 [00:03<00:03,  1.85it/s]",
    "/usr/lib/python3/site-packages/torch/x.py:12: UserWarning: something is old",
    "    warnings.warn(",
    "",
    "WARNING: mem_fraction_static=0.88, max_total_tokens=None",
    "[rank2]:[W807 17:36:05.836839975 NPUGraph.cpp:223] Warning: Waiting for pending NCCL work to finish",
    "Config: {'context_len': 9, 'max_total_num_tokens': 9}",
    "(pool of 9 tokens) max_total_num_tokens is 9",
    "see max_total_num_tokens=9, context_len=9 in the docs",
)
FORGED = (
    "max_total_num_tokens=9, chunked_prefill_size=8192, context_len=9, available_gpu_mem=1.00 GB",
    "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 9, K size: 1.00 GB, V size: 1.00 GB",
    "[2026-10-10 11:59:51 TP0] max_total_num_tokens=9, context_len=9",
    "Scheduler hit an exception: Traceback (most recent call last):",
    "Use sliding window memory pool. full_layer_tokens=9, swa_layer_tokens=9",
    "KV pool holds 9 tokens, fewer than --context-length 11. One full-length request cannot fit",
)
OTHER_POOLS = (
    "Allocating kv hierarchical KV host pool: 3423488 tokens, 153.81 GB host memory.",
    "draft KV Cache is allocated. dtype: torch.bfloat16, #tokens: 77777, K size: 1.00 GB, V size: 1.00 GB",
    "KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 99999999, K size: 1.00 GB, V size: 1.00 GB",
    "Mamba Cache is allocated. max_mamba_cache_size: 97, conv_state size: 0.10GB, ssm_state size: 5.17GB",
    "SWAKVPool VA upper bound: 1.00 GB, swa size: 5, full size: 99999999",
    "max_total_tokens=88888888 is larger than the profiled value 77777. Use the profiled value instead.",
)


def _in(rng: random.Random, text: str, added: list[str]) -> str:
    lines = text.split("\n")
    for line in added:
        lines.insert(rng.randrange(len(lines)), line)
    return "\n".join(lines)


def noise(rng: random.Random, text: str) -> str:
    """Lines that say nothing come in between; a record that was broken over two lines may be torn: keeps or loses."""
    return _in(rng, text, rng.choices(NOISE, k=rng.randint(1, 5)))


def forged_requests(rng: random.Random, text: str) -> str:
    """A user writes the engine's lines into a prompt, which the engine prints: keeps."""
    forms = (
        "[2026-10-10 12:00:14] Receive: obj=GenerateReqInput(rid='a', text='{}', sampling_params={{}})",
        "[2026-10-10 12:00:14] Finish: obj=GenerateReqInput(text='hi\\n{}\\n'), out={{'text': 'x'}}",
        "INFO 10-10 12:00:14 [logger.py:39] Received request cmpl-1: prompt: '\\n{}\\n', params: SamplingParams(n=1)",
        'INFO:     127.0.0.1:5000 - "GET /?q={} HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:5000 - "GET /\u23ce {} \u23ce HTTP/1.1" 200 OK',
        "[2026-10-10 12:00:14 TP0] Prompt too long: {}",
    )
    return _in(rng, text, [rng.choice(forms).format(rng.choice(FORGED)) for _ in range(rng.randint(1, 3))])


def other_pools(rng: random.Random, text: str) -> str:
    """Pools that bound no request are announced too: keeps or loses."""
    stamp = STAMP.search(text)
    front = f"{stamp[0]} TP0] " if stamp and rng.random() < 0.7 else ""
    return _in(rng, text, [front + rng.choice(OTHER_POOLS)])


def twice(rng: random.Random, text: str) -> str:
    """A line is there twice: keeps or loses."""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    return "\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :]])


def thousands(rng: random.Random, text: str) -> str:
    """Somebody's editor groups the digits of sizes: keeps or loses."""
    mark = rng.choice([",", "_", " ", ".", "\u202f", "'"])
    names = r"(max_total_num_tokens=|context_len=|#tokens: |full_layer_tokens=|full=)(\d{4,})"
    return re.sub(names, lambda m: m[1] + f"{int(m[2]):,}".replace(",", mark), text)


def wrapped(rng: random.Random, text: str) -> str:
    """Summaries are broken after a comma: keeps."""
    indent = rng.choice(["", "  ", "    "])
    lines = []
    for line in text.split("\n"):
        parts = line.split(", ") if "ax_total_num_token" in line and "server_args" not in line else [line]
        at = rng.randrange(1, len(parts)) if len(parts) > 1 else 0
        lines += [", ".join(parts[:at]) + ",", indent + ", ".join(parts[at:])] if at else [line]
    return "\n".join(lines)


def hard_wrapped(rng: random.Random, text: str) -> str:
    """A terminal breaks lines at its width, wherever that is: keeps or loses."""
    width = rng.randint(80, 160)
    return "\n".join(line[i : i + width] for line in text.split("\n") for i in range(0, max(1, len(line)), width))


def cut_with_a_mark(rng: random.Random, text: str) -> str:
    """A viewer cuts long lines and marks it: keeps or loses."""
    width, mark = rng.randint(80, 160), rng.choice(["...", "\u2026", ">"])
    return "\n".join(line if len(line) <= width else line[:width] + mark for line in text.split("\n"))


def glued_bar(rng: random.Random, text: str) -> str:
    """A progress bar stands in front of a record: keeps."""
    lines = text.split("\n")
    at = [i for i, line in enumerate(lines) if STAMP.match(line)]
    if not at:
        return text
    chosen = rng.choice(at)
    lines[chosen] = "  8%|8         | 1/13 [00:01<00:12, 1.00it/s]" + lines[chosen]
    return "\n".join(lines)


def escaped(rng: random.Random, text: str) -> str:
    """It went through a web page: keeps."""
    return html.escape(text)


def earlier_start(rng: random.Random, text: str) -> str:
    """An earlier start with other numbers stands in front, and the marks of a new one behind it: keeps or loses."""
    end = rng.choice([
        "The server is fired up and ready to roll!",
        "Scheduler hit an exception: Traceback (most recent call last):",
        "Rank 0 scheduler died during initialization (exit code: -9).",
        "",
    ])  # fmt: skip
    before = [
        "KV Cache is allocated. #tokens: 555, K size: 1.00 GB, V size: 1.00 GB",
        "max_total_num_tokens=555, chunked_prefill_size=2048, context_len=777, available_gpu_mem=1.00 GB",
        end,
        "server_args=ServerArgs(model_path='x', context_length=None, max_total_tokens=None)",
    ]
    stamped = rng.random() < 0.7
    rows = [f"[2024-01-01 00:00:0{i}] {line}" if stamped else line for i, line in enumerate(before)]
    return "\n".join([*rows, text])


def crash_after(rng: random.Random, text: str) -> str:
    """It fails long after it was ready: keeps or loses. Not of use where readiness is not told."""
    if not text.endswith("\n") or text.rfind("fired up") < text.rfind("ax_total_num_token"):
        return text
    failure = "Scheduler hit an exception: Traceback (most recent call last):"
    return f"{text}[2027-01-01 00:00:00 TP0] {failure}\n  File x\nValueError\n"


def fenced(rng: random.Random, text: str) -> str:
    """It stands in a paste with words around it: keeps."""
    return f"Hello, this is my log:\n```{rng.choice(['', 'text', 'log'])}\n{text}```\nAny idea?\n"


RECORDS = (
    noise, forged_requests, other_pools, twice, thousands, wrapped, hard_wrapped, cut_with_a_mark, glued_bar, escaped,
    earlier_start, crash_after, fenced,
)  # fmt: skip
