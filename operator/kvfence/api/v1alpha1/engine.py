"""The part of a pool's spec that says which model is served by which engine."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from kvfence.api.declaring import AS_MAP, ATOMIC, Extended, Model, Rule, Tokens, rules
from kvfence.api.v1alpha1.owned import ARGUMENT_RULES, ROLE_ARGUMENT_RULE, VARIABLE_RULES

Image = Annotated[
    str,
    Field(max_length=512),
    Extended(
        Rule(
            r"self.matches('^[^\\s]+$')",
            "image: name a container image, such as registry/name:tag or registry/name@sha256:digest, without spaces",
        )
    ),
]


def _release(field: str) -> Extended:
    return Extended(
        Rule(
            r"self.matches('^[0-9]+\\.[0-9]+\\.[0-9]+(\\.post[0-9]+)?$')",
            f"{field}: write a release such as 0.5.23; development versions and release candidates are not admitted",
        )
    )


ARGUMENT_COUNT = 64
ARGUMENT_LENGTH = 1024

Argument = Annotated[str, Field(min_length=1, max_length=ARGUMENT_LENGTH), Extended(*ARGUMENT_RULES)]
RoleArgument = Annotated[
    str, Field(min_length=1, max_length=ARGUMENT_LENGTH), Extended(*ARGUMENT_RULES, ROLE_ARGUMENT_RULE)
]


class SecretKey(Model):
    """One key of a Secret in the pool's namespace."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253)]
    """Key in the Secret's data."""


class ModelSource(Model):
    """The model, under the name that clients ask for, and where its files are."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                "!self.uri.startsWith('hf://') || has(self.commit)",
                "commit: with an hf:// uri, name a commit (40 hexadecimal digits), so that every engine has the same",
                ".commit",
            ),
            Rule(
                "self.uri.startsWith('hf://') || !has(self.commit)",
                "commit: only an hf:// uri has commits: remove commit",
                ".commit",
            ),
            Rule(
                "self.uri.startsWith('hf://') || !has(self.tokenSecretRef)",
                "tokenSecretRef: only an hf:// uri is fetched with a token: remove tokenSecretRef",
                ".tokenSecretRef",
            ),
        )
    )

    served_name: Annotated[
        str,
        Field(max_length=253),
        Extended(
            Rule(
                "self.matches('^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$')",
                "servedName: use letters, digits and . _ : / - in between",
            )
        ),
    ]
    """What clients write as `model` in a request."""
    uri: Annotated[
        str,
        Field(max_length=1024),
        Extended(
            Rule(
                "self.startsWith('hf://') || self.startsWith('pvc://') || self.startsWith('file://')",
                "uri: begin with hf:// (hf://organisation/name), pvc:// (pvc://claim/folder) or file:// "
                "(file:///folder in the engine's container)",
            ),
            Rule(
                "!self.startsWith('hf://') || self.matches('^hf://[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$')",
                "uri: write hf://organisation/name, and nothing behind it; the commit has a field of its own",
            ),
            Rule(
                "!self.startsWith('pvc://') || "
                "self.matches('^pvc://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(/[A-Za-z0-9._-]+)*$')",
                "uri: write pvc://claim or pvc://claim/folder, with a PersistentVolumeClaim of this namespace",
            ),
            Rule(
                "!self.startsWith('file://') || self.matches('^file://(/[A-Za-z0-9._-]+)+$')",
                "uri: write file:/// and the path of a folder in the engine's container, such as file:///models/mine",
            ),
            Rule(
                "!self.split('/').exists(part, part == '..')",
                "uri: leave out .. and write the path as it is",
            ),
        ),
    ]
    """Where the model is: hf://organisation/name is fetched, pvc://claim/folder is mounted read-only, and
    file:///folder is there already, from the engine's image or a volume of the template."""
    commit: Annotated[
        str | None,
        Field(max_length=40),
        Extended(
            Rule(
                "self.matches('^[0-9a-f]{40}$')",
                "commit: write the 40 hexadecimal digits of a commit; branches and tags move",
            )
        ),
    ] = None
    """The commit of an hf:// model. Required there."""
    max_context_tokens: Tokens | None = None
    """What the model itself can do. No more than this is offered, whatever is asked for."""
    token_secret_ref: SecretKey | None = None
    """The token that an hf:// model is fetched with, if it needs one."""


class Variable(Model):
    """An environment variable with a plain value."""

    name: Annotated[str, Field(min_length=1, max_length=256), Extended(*VARIABLE_RULES)]
    """Name of the variable. Those that belong to kvfence are refused."""
    value: Annotated[str, Field(max_length=4096)] = ""
    """Its value. Not for secrets."""


class SGLang(Model):
    """SGLang as the engine of every role."""

    image: Image
    """The container image of SGLang, any that has SGLang as a Python package. It should be named by digest."""
    version: Annotated[str | None, Field(max_length=32), _release("version")] = None
    """The release that is in the image. With it a version that is too old is refused before anything starts; what runs
    is asked in any case, and has to agree."""
    minimum_version: Annotated[str | None, Field(max_length=32), _release("minimumVersion")] = None
    """The oldest release that this pool takes. It can raise the cluster's floor and not lower it."""
    plugin_version: Annotated[
        str | None,
        Field(max_length=32),
        Extended(
            Rule(
                r"self.matches('^[0-9]+\\.[0-9]+\\.[0-9]+[0-9A-Za-z.-]*$')",
                "pluginVersion: write a version of kvfence-engine, such as 0.1.0",
            )
        ),
    ] = None
    """The version of kvfence-engine to inject. Without it: the operator's own when a revision is made, which then keeps
    it."""
    args: Annotated[tuple[Argument, ...], Field(max_length=ARGUMENT_COUNT), ATOMIC] = ()
    """Flags of SGLang for all roles, a word each. Flags that kvfence sets, and those that would go around its defences,
    are refused, and so are abbreviations of them."""
    env: Annotated[tuple[Variable, ...], Field(max_length=64), AS_MAP] = ()
    """Environment variables of the engines of all roles."""


class EngineType(StrEnum):
    """What runs the model."""

    SGLANG = "SGLang"


class Engine(Model):
    """What runs the model."""

    type: EngineType = EngineType.SGLANG
    """Which engine. SGLang is the only one."""
    sglang: SGLang
    """The settings of SGLang."""
