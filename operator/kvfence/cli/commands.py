"""The commands by name, each loaded when it is asked for."""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperGroup

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@dataclass(frozen=True, slots=True)
class Declared:
    """Where a command is, and what the list of commands says of it."""

    module: str
    says: str
    function: str = "command"


COMMANDS: dict[str, Declared] = {
    "doctor": Declared("kvfence.cli.doctor", "Say what is wrong with engines, from their servers, logs or pods."),
    "canary": Declared("kvfence.cli.canary", "Send marked prompts to a server or a pair, and look who gets whose."),
    "capacity": Declared("kvfence.cli.capacity", "Estimate the KV pool of a model on a GPU before one buys it."),
    "explain": Declared("kvfence.cli.explain", "Say what a reason, condition, check, finding or advisory means."),
    "crd": Declared("kvfence.cli.crd", "Print the CustomResourceDefinition, for kubectl apply -f -."),
    "version": Declared("kvfence.cli.version", "Print the versions of kvfence, its advisories and Python."),
}

EPILOG = (
    "Exit codes of every command: 0 all is well, 1 something was found, 2 cannot tell, 3 wrong usage, "
    "70 a fault of kvfence itself, 74 the output cannot be written, 130 ended by Ctrl-C, 141 its reader went away."
)


class Commands(TyperGroup):
    """Lists the commands without loading them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return their names in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the signature is click's
        """Return a command, loaded now; none when there is no such one."""
        declared = COMMANDS.get(cmd_name)
        return None if declared is None else loaded(cmd_name, declared)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - the signature is click's
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, declared.says) for name, declared in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant; with one that is not there, say which look like it."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(args[0], COMMANDS)
            ctx.fail(f"No such command: {args[0]}." + (f" Did you mean {' or '.join(near)}?" if near else ""))
        return super().resolve_command(ctx, args)


def loaded(name: str, declared: Declared) -> Any:
    """Return what click runs for one command."""
    function = getattr(importlib.import_module(declared.module), declared.function)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=CONTEXT)
    alone.command(name, context_settings=CONTEXT)(function)
    return typer.main.get_command(alone)


def root(completion: bool) -> Any:
    """Return what click runs for the whole command line.

    Args:
        completion: whether it can install completions; a shell knows a program by one word, not by `kubectl kvfence`.
    """
    app = typer.Typer(
        cls=Commands, rich_markup_mode=None, context_settings=CONTEXT, epilog=EPILOG, add_completion=completion
    )
    app.callback(invoke_without_command=True)(_kvfence)
    return typer.main.get_command(app)


def _kvfence(context: typer.Context) -> None:
    """Check that one user's data cannot reach another's answer, on any SGLang or vLLM.

    `kvfence doctor` says what is wrong from what servers and logs tell; `kvfence canary` proves it with prompts of its
    own. COMMAND --help has examples.
    """
    if context.invoked_subcommand is None:
        context.fail("No command was given.")
