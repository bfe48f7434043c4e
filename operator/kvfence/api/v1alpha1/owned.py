"""Flags and environment variables of an engine that a pool may not set, and the CEL rules that say so.

Two facts about SGLang 0.5.23 shape the rules. Its parser takes any unambiguous beginning of a flag for the flag
(`--disaggregation-m` is `--disaggregation-mode`), so that the beginning of a flag is refused with it. And `--config`
names a file with more flags, which nobody here would have seen.
"""

from kvfence.api.declaring import Rule

FROM_FIELDS = (
    *("--model-path", "--model", "--served-model-name", "--revision", "--context-length"),
    *("--tp-size", "--tensor-parallel-size", "--pp-size", "--pipeline-parallel-size"),
    *("--dp-size", "--data-parallel-size"),
    *("--disaggregation-mode", "--disaggregation-transfer-backend", "--disaggregation-bootstrap-port"),
    "--disaggregation-enable-kv-checksum",
)
"""The operator sets them from fields of the pool."""

OF_THE_POD = (
    *("--host", "--port", "--skip-server-warmup", "--api-key", "--admin-api-key"),
    *("--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs", "--ssl-keyfile-password", "--enable-ssl-refresh"),
)
"""The operator decides how an engine listens and who may ask it."""

MULTI_NODE = ("--nnodes", "--node-rank", "--dist-init-addr", "--nccl-init-addr")
"""One engine in several pods: not supported yet."""

AROUND_THE_DOOR = (
    "--config",  # flags from a file
    "--allow-auto-truncate",  # prefill and decode cut the same prompt to different lengths
    "--enable-pd-role-switch",
    # Servers, processes, machines or listeners that the door does not stand in.
    *("--tokenizer-worker-num", "--enable-http2", "--enable-http-worker-reuseport", "--encoder-only", "--use-ray"),
    *("--grpc-mode", "--grpc-port", "--smg-grpc-mode", "--smg-http-sidecar-port", "--grpc-http-sidecar-port"),
    "--skip-tokenizer-init",  # prompts would come in as numbers
    "--enable-custom-logit-processor",  # clients send code
    "--trust-request-chat-template",  # clients send templates
)
"""With any of these, one user's data may reach another's answer, or the engine more than the door lets through."""

SHARED = (
    *("--page-size", "--kv-cache-dtype", "--dtype", "--quantization", "--json-model-override-args"),
    *("--tokenizer-path", "--tokenizer-mode", "--chat-template", "--hf-chat-template-name", "--completion-template"),
)
"""Prefill and decode must agree on them (invariant I4): they belong where both roles read them."""

OWNED_VARIABLES = (
    *("SGLANG_PLUGINS", "SGLANG_PLATFORM", "SGLANG_RUST_SERVER", "SGLANG_IS_IN_CI", "SGLANG_HOST_IP"),
    *("SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", "SGLANG_ENABLE_REQUEST_HEADER_OVERRIDES"),
    *("SGLANG_DISAGGREGATION_WAITING_TIMEOUT", "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT"),
    *("SGLANG_DISAGGREGATION_DEFERRED_DECODE_KV_RELEASE", "SGLANG_DIAG_BYPASS_HEALTH_GENERATE"),
)
OWNED_PREFIXES = ("KVFENCE_", "PYTHON", "LD_", "SGLANG_TEST_", "SGLANG_KV_CANARY_PERTURB_")
"""How Python and its libraries are loaded, what kvfence-engine reads, and faults that SGLang can inject in itself."""

TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def _listed(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _no_flag_of(flags: tuple[str, ...]) -> str:
    """CEL for: this argument is none of the flags, with or without `=value`, nor the beginning of one."""
    return (
        "!self.startsWith('--') || self.split('=')[0] == '--' || "
        f"[self.split('=')[0]].all(n, !{_listed(flags)}.exists(f, f.startsWith(n)))"
    )


ARGUMENT_RULES = (
    Rule(
        _no_flag_of(FROM_FIELDS),
        "args: kvfence sets this flag from a field of the pool: remove it, and set the field under model, "
        "contextLength, disaggregation, integrity or roles[].parallelism",
    ),
    Rule(
        _no_flag_of(OF_THE_POD),
        "args: kvfence decides how an engine listens, warms up and is authenticated to: remove this flag",
    ),
    Rule(
        _no_flag_of(MULTI_NODE),
        "args: an engine in several pods (multi-node) is not supported yet: remove this flag, and choose a parallelism "
        "that fits into one pod",
    ),
    Rule(
        _no_flag_of(AROUND_THE_DOOR),
        "args: with this flag kvfence cannot keep one user's data out of another's answer: remove it",
    ),
)
ROLE_ARGUMENT_RULE = Rule(
    _no_flag_of(SHARED),
    "args: prefill and decode must agree on this flag: move it from the role's args to engine.sglang.args",
)

VARIABLE_RULES = (
    Rule(
        "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
        "name: use letters, digits and underscores, and begin with no digit",
    ),
    Rule(
        f"!(self in {_listed(OWNED_VARIABLES)}) && !{_listed(OWNED_PREFIXES)}.exists(p, self.startsWith(p))",
        "name: this variable decides how the engine and its defences are loaded or what they check, and belongs to "
        "kvfence: remove it",
    ),
    Rule(
        f"!(self in {_listed(TOKEN_VARIABLES)})",
        "name: a token does not belong into an object that many may read: put it into a Secret, and name that in "
        "model.tokenSecretRef",
    ),
)
