"""What is told of a pool that comes up, and when: each chapter once, in order, as soon as the API says it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from e2e.demo import arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

    from e2e.demo.view import View


@dataclass(frozen=True)
class Line:
    """Something that happened."""

    text: str
    details: tuple[str, ...] = ()


def _running(view: View) -> Line | None:
    engines = view.engines
    if len(engines) < view.replicas or not all(pod.running for pod in engines):
        return None
    names = tuple(f"pod {pod.name} ({'open' if pod.ready else 'closed: not Ready'})" for pod in engines)
    if all(pod.ready for pod in engines):
        return Line("The engines run already, from an earlier run:", names)
    return Line("The engines' containers run. Each starts with its door closed, and SGLang loads:", names)


def _all(view: View) -> str:
    return "Both" if view.replicas == 2 else f"All {view.replicas}"


def _started(view: View) -> Line | None:
    if not view.holds("RolesReady"):
        return None
    return Line(f"{_all(view)} engines have started. The operator asks each door, and each server behind it.")


def _measured(view: View) -> Line | None:
    sizes = [(role["name"], role.get("kvPoolTokens")) for role in view.roles]
    if not sizes or not all(tokens for _, tokens in sizes) or not view.context:
        return None
    words = ", ".join(f"{tokens:,} tokens on {name}" for name, tokens in sizes)
    return Line(f"Measured, as the engines themselves say, the room in the KV pools: {words}.")


def _capped(view: View) -> Line | None:
    if not view.holds("ContextFits"):
        return None
    worked_out = arithmetic.worked_out(view)
    asked = int(view.context["requestedTokens"])
    limiting = view.context.get("limitingRole")
    why = f", and {limiting} limits it" if limiting else ""
    return Line(f"Capped: {worked_out.tokens:,} of the {asked:,} tokens asked for are on offer{why}.", worked_out.lines)


def _verified(view: View) -> Line | None:
    if not view.holds("IntegrityEnforced") or not view.holds("EngineAllowed"):
        return None
    versions = {str(role["engineVersion"]) for role in view.roles if role.get("engineVersion")}
    if not versions:
        return None
    plugin = view.conditions["PluginOutdated"].message if "PluginOutdated" in view.conditions else ""
    closed = () if any(pod.ready for pod in view.engines) else (f"{'':<14}Each door answers, and lets no user in yet.",)
    return Line(
        "Verified on the running servers:",
        (
            f"version       SGLang {', '.join(sorted(versions))}",
            f"KV            {view.conditions['IntegrityEnforced'].message}",
            f"door          {plugin}",
            *closed,
        ),
    )


def _pair_proven(view: View) -> Line | None:
    """The operator says what it waits for next: the router, or the front."""
    after = {"Admitting", "RouterNotReady", "Admitted"}
    if view.reason("TrafficAdmitted") not in after and not view.holds("IsolationVerified"):
        return None
    return Line(
        "Proven as a pair: marker prompts came back to whoever had sent them and to nobody else, prompts around the "
        "cap were answered whole or refused, and faults that were put into a canary's own pages were found."
    )


def _front_proven(view: View) -> Line | None:
    if not view.holds("IsolationVerified"):
        return None
    return Line("Proven with its router and proxy: users reach two inference paths and the list of models, no other.")


def _admitted(view: View) -> Line | None:
    engines = view.engines
    if not view.holds("Ready") or not engines or not all(pod.ready for pod in engines):
        return None
    return Line(f"Admitted: the doors are open. {view.conditions['TrafficAdmitted'].message}")


CHAPTERS = (_running, _started, _measured, _capped, _verified, _pair_proven, _front_proven, _admitted)


@dataclass
class Story:
    """Tells chapter after chapter. A chapter that was missed, since the next came at once, is told with it."""

    told: int = 0
    """How many chapters."""
    chapters: tuple[Callable[[View], Line | None], ...] = CHAPTERS

    @property
    def over(self) -> bool:
        """Whether all has been told."""
        return self.told == len(self.chapters)

    def news(self, view: View) -> list[Line]:
        """What is to be told now and was not yet."""
        lines: list[Line] = []
        for chapter in self.chapters[self.told :]:
            line = chapter(view)
            if line is None:
                break
            lines.append(line)
            self.told += 1
        return lines
