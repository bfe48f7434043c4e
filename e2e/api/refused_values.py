"""A table of values that an InferencePool may not have, each beside one that it may have in the same place."""

from __future__ import annotations

from e2e.api.inference_pools import ABSENT, COMMIT, Case, pool

HF = {"spec.model.uri": "hf://org/name", "spec.model.commit": COMMIT}
ARGS, ROLE_ARGS = "spec.engine.sglang.args", "spec.roles.0.args"
ENV = "spec.engine.sglang.env"
TEMPLATE = "spec.roles.0.template"
ROLE = "spec.roles[0]"
EXEMPTIONS = "spec.advisories.exemptions"
EXEMPT = {"id": "CVE-2026-3059", "who": "ada", "reason": "no encoder here", "until": "2027-01-31T00:00:00Z"}

ENDLESS = {name: value for name, value in EXEMPT.items() if name != "until"}


def with_role(kind: str) -> list[dict[str, str]]:
    """The roles of a pool, and one more."""
    return [*pool()["spec"]["roles"], {"name": "more", "type": kind}]


CASES = [
    Case("a name of 41 characters", "metadata.name", "a" * 41, "a" * 40, "use at most 40 characters", "<nil>"),
    Case("a name with a dot", "metadata.name", "a.b", "a-b", "lower-case letters, digits and dashes", "<nil>"),
    Case("a name that begins with a digit", "metadata.name", "1a", "a1", "begin with a letter", "<nil>"),
    Case("a served name that ends in a dash", "spec.model.servedName", "tiny-", "org/Tiny-1.5", "use letters"),
    Case("no served name", "spec.model.servedName", "", "t", "use letters"),
    Case("a scheme that nothing fetches", "spec.model.uri", "s3://a/b", "pvc://a/b", "begin with hf://"),
    Case("an hf uri without an organisation", "spec.model.uri", "hf://a", "hf://a/b", "organisation/name", "", HF),
    Case("an hf uri with a branch", "spec.model.uri", "hf://a/b@main", "hf://a/b", "commit has a field", "", HF),
    Case("a claim in capitals", "spec.model.uri", "pvc://Claim/a", "pvc://claim/A", "PersistentVolumeClaim"),
    Case("a file uri without a path", "spec.model.uri", "file://", "file:///a", "write file:/// and the path"),
    Case("a path that climbs", "spec.model.uri", "file:///a/../b", "file:///a/b", "leave out .."),
    Case("an hf uri without a commit", "spec.model.commit", ABSENT, COMMIT, "name a commit", "", HF),
    Case("a branch in place of a commit", "spec.model.commit", "main", COMMIT, "40 hexadecimal digits", "", HF),
    Case("a commit without an hf uri", "spec.model.commit", COMMIT, ABSENT, "remove commit"),
    Case(
        "a token without an hf uri",
        "spec.model.tokenSecretRef",
        {"name": "a", "key": "b"},
        ABSENT,
        "remove tokenSecretRef",
    ),
    Case("a model without context", "spec.model.maxContextTokens", 7, 8, "greater than or equal to 8"),
    Case("another engine", "spec.engine.type", "vLLM", "SGLang", 'supported values: "SGLang"'),
    Case("an image with a space", "spec.engine.sglang.image", "a b", "a:b", "name a container image"),
    Case("a development version", "spec.engine.sglang.version", "0.5.24.dev1", "0.5.24", "write a release"),
    Case("a candidate as minimum", "spec.engine.sglang.minimumVersion", "0.5.24rc1", "0.5.24.post1", "write a release"),
    Case("a plugin by tag", "spec.engine.sglang.pluginVersion", "latest", "0.1.0.dev0", "version of kvfence-engine"),
    Case("a flag of kvfence's", ARGS, ["--context-length=1"], ["--max-total-tokens=1"], "set the field", f"{ARGS}[0]"),
    Case("a flag of the pod's", ARGS, ["a", "--host"], ["a", "host"], "remove this flag", f"{ARGS}[1]"),
    Case("several nodes", ARGS, ["--nnodes", "2"], ["nnodes", "2"], "multi-node", f"{ARGS}[0]"),
    Case("a way around the door", ARGS, ["--config", "f"], ["--log-level", "f"], "cannot keep", f"{ARGS}[0]"),
    Case(
        "a flag that both roles share",
        ROLE_ARGS,
        ["--dtype"],
        ["--watchdog-timeout"],
        "move it",
        f"{ROLE}.args[0]",
    ),
    Case(
        "a flag of kvfence's in a role", ROLE_ARGS, ["--dp-size=2"], ["--ep-size=2"], "set the field", f"{ROLE}.args[0]"
    ),
    Case(
        "a flag of the pod's in a role",
        ROLE_ARGS,
        ["--api-key=a"],
        ["--api-server=a"],
        "remove this flag",
        f"{ROLE}.args[0]",
    ),
    Case("several nodes in a role", ROLE_ARGS, ["--node-rank=1"], ["node"], "multi-node", f"{ROLE}.args[0]"),
    Case("a way around the door in a role", ROLE_ARGS, ["--grpc-port=1"], ["grpc"], "cannot keep", f"{ROLE}.args[0]"),
    Case("a variable of kvfence's", ENV, [{"name": "LD_PRELOAD"}], [{"name": "LD"}], "remove it", f"{ENV}[0].name"),
    Case(
        "a token in a variable", ENV, [{"name": "HF_TOKEN"}], [{"name": "HF_HOME"}], "tokenSecretRef", f"{ENV}[0].name"
    ),
    Case("65 flags", ARGS, ["a"] * 65, ["a"] * 64, "must have at most 64 items"),
    Case("a long flag", ARGS, ["a" * 1025], ["a" * 1024], "may not be more than 1024", f"{ARGS}[0]"),
    Case("a variable with a dash", ENV, [{"name": "A-B"}], [{"name": "A_B"}], "use letters", f"{ENV}[0].name"),
    Case(
        "a variable twice",
        ENV,
        [{"name": "A"}, {"name": "A"}],
        [{"name": "A"}, {"name": "B"}],
        "Duplicate",
        f"{ENV}[1]",
    ),
    Case(
        "no prefill",
        "spec.roles.0.type",
        "Decode",
        "Prefill",
        "one role of type Prefill is needed: add one",
        "spec.roles",
    ),
    Case(
        "no decode",
        "spec.roles.1.type",
        "Prefill",
        "Decode",
        "one role of type Decode is needed: add one",
        "spec.roles",
    ),
    Case(
        "a unified role",
        "spec.roles",
        with_role("Unified"),
        with_role("Decode"),
        "use one role of type Prefill and one of type Decode",
        "spec.roles[2].type",
    ),
    Case("a role name of 12 characters", "spec.roles.0.name", "a" * 12, "a" * 11, "may not be more than 11"),
    Case("a role called router", "spec.roles.0.name", "router", "routers", "choose another"),
    Case("a role name in capitals", "spec.roles.0.name", "Prefill", "prefill2", "lower-case letters"),
    Case("two roles of one name", "spec.roles.0.name", "decode", "prefill2", "Duplicate", "spec.roles[1]"),
    Case("no replicas", "spec.roles.0.replicas", 0, 1, "greater than or equal to 1"),
    Case("no parallelism", "spec.roles.0.parallelism.tensor", 0, 8, "greater than or equal to 1"),
    Case(
        "a minute is the least for a start", "spec.roles.0.startupTimeoutSeconds", 59, 60, "greater than or equal to 60"
    ),
    Case(
        "a label of kvfence's",
        f"{TEMPLATE}.metadata.labels",
        {"kvfence.io/revision": "a"},
        {"a/revision": "a"},
        "remove them",
        f"{ROLE}.template.metadata.labels",
    ),
    Case(
        "an annotation of kvfence's",
        f"{TEMPLATE}.metadata.annotations",
        {"kvfence.io/a": "a"},
        {"a/a": "a"},
        "remove them",
        f"{ROLE}.template.metadata.annotations",
    ),
    Case(
        "a volume of kvfence's",
        f"{TEMPLATE}.spec.volumes",
        [{"name": "kvfence-a", "emptyDir": {}}],
        [{"name": "a", "emptyDir": {}}],
        "choose another",
        f"{ROLE}.template.spec.volumes[0].name",
    ),
    *(
        Case(
            f"a mount at {path}",
            f"{TEMPLATE}.spec.containers",
            [{"name": "engine", "volumeMounts": [{"name": "a", "mountPath": path}]}],
            [{"name": "engine", "volumeMounts": [{"name": "a", "mountPath": good}]}],
            "plain absolute path",
            f"{ROLE}.template.spec.containers[0].volumeMounts[0].mountPath",
        )
        for path, good in (
            ("/kvfence/kvfence_engine", "/models/kvfence"),
            ("/kvfence-keys", "/keys"),
            ("/a/../kvfence", "/a/b"),
            ("//kvfence", "/a"),
            ("./kvfence", "/b"),
        )
    ),
    Case(
        "a mount of a volume of kvfence's",
        f"{TEMPLATE}.spec.containers",
        [{"name": "engine", "volumeMounts": [{"name": "kvfence-engine", "mountPath": "/a"}]}],
        [{"name": "engine", "volumeMounts": [{"name": "engine", "mountPath": "/a"}]}],
        "choose another",
        f"{ROLE}.template.spec.containers[0].volumeMounts[0].name",
    ),
    Case(
        "a plug-in version that no image tag can hold",
        "spec.engine.sglang.pluginVersion",
        "0.1.0+local",
        "0.1.0",
        "write a version",
    ),
    Case(
        "another container",
        f"{TEMPLATE}.spec.containers",
        [{"name": "sidecar"}],
        [{"name": "engine"}],
        'supported values: "engine"',
        f"{ROLE}.template.spec.containers[0].name",
    ),
    Case("no router", "spec.router.replicas", 0, 2, "greater than or equal to 1"),
    Case("a router image with a space", "spec.router.image", "a b", "a:b", "name a container image"),
    Case("NIXL", "spec.disaggregation.transferBackend", "NIXL", "Mooncake", "use Mooncake"),
    Case("the door's port", "spec.disaggregation.bootstrapPort", 8901, 8902, "choose another"),
    Case("the engine's own port", "spec.disaggregation.bootstrapPort", 30000, 30001, "choose another"),
    Case(
        "a port of outgoing connections",
        "spec.disaggregation.bootstrapPort",
        32768,
        32767,
        "less than or equal to 32767",
    ),
    Case("no time for a transfer", "spec.disaggregation.transferTimeoutSeconds", 0, 1, "greater than or equal to 1"),
    Case("a minimum above the request", "spec.contextLength.minimumTokens", 4097, 4096, "lower it, or ask for more"),
    Case("a reserve of everything", "spec.contextLength.reserveTokens", 4096, 4095, "lower it"),
    Case("more than half as headroom", "spec.contextLength.headroomPercent", 51, 50, "less than or equal to 50"),
    Case(
        "a policy that looks away",
        "spec.contextLength.policy",
        "Ignore",
        "RequireFit",
        'supported values: "CapToFit", "RequireFit"',
    ),
    Case("no room for a prompt", "spec.contextLength.requestedTokens", 7, 8, "greater than or equal to 8"),
    Case("a fraction of a token", "spec.contextLength.requestedTokens", 4096.5, 4096, "must be of type int64"),
    Case("no request", "spec.contextLength.requestedTokens", ABSENT, 8, "Required value"),
    Case(
        "a checksum that is off",
        "spec.integrity.kvChecksum",
        "Disabled",
        "Observe",
        'supported values: "Enforce", "Observe"',
    ),
    Case("an advisory that is looked away from", "spec.advisories.action", "Ignore", "Warn", '"Block", "Warn"'),
    Case("an exemption for ever", EXEMPTIONS, [ENDLESS], [EXEMPT], "Required value", f"{EXEMPTIONS}[0].until"),
    Case(
        "an exemption by a blank",
        EXEMPTIONS,
        [EXEMPT | {"who": " "}],
        [EXEMPT],
        "answers for it",
        f"{EXEMPTIONS}[0].who",
    ),
    Case("an exemption by nobody", EXEMPTIONS, [EXEMPT | {"who": ""}], [EXEMPT], "answers", f"{EXEMPTIONS}[0].who"),
    Case(
        "an exemption without a reason",
        EXEMPTIONS,
        [EXEMPT | {"reason": ""}],
        [EXEMPT],
        "does no harm here",
        f"{EXEMPTIONS}[0].reason",
    ),
    Case(
        "an exemption from everything",
        EXEMPTIONS,
        [EXEMPT | {"id": "*"}],
        [EXEMPT],
        "advisory's id",
        f"{EXEMPTIONS}[0].id",
    ),
    Case(
        "an exemption until some day",
        EXEMPTIONS,
        [EXEMPT | {"until": "soon"}],
        [EXEMPT],
        "of type date-time",
        f"{EXEMPTIONS}[0].until",
    ),
    Case("BlueGreen", "spec.strategy.type", "BlueGreen", "Recreate", "use Recreate"),
]
