"""Leaves markers of users A in the pages of a target, so that whoever reads pages that are not its own says one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvfence.verify import markers
from kvfence.verify.canary import edges, people
from kvfence.verify.canary.result import Result, failed, not_judged
from kvfence.verify.judging import crossed, unanswered

if TYPE_CHECKING:
    from kvfence.verify.canary.session import Session, Target

FEWEST, MOST = 4, 24
"""Users."""

TIMES = 2
"""Pools full of markers that are planted, if users and budget are enough: pages that are free are then all full."""

SHARE = 3
"""Part of what is left of the budget, at most one in so many."""

PATIENCE = 3
"""Questions that may go unanswered: a pair under load loses a transfer now and then."""

SMALLEST = 2 * (len(markers.LEAD) + markers.LENGTH)
_SIZE = 900
"""Characters of a prompt; more only where limits are told and the budget allows it."""
_ANSWER_TOKENS = 4


async def plant(session: Session) -> dict[str, str] | Result:
    """Ask one after the other, each with its marker over and over.

    Returns:
        The user of each marker; a result when that went wrong: failed when one of them already got another's marker.

    Raises:
        BudgetSpentError: when it would cost more than is left.
    """
    share = session.budget.tokens_left // SHARE
    most = max(_SIZE, share // MOST) if edges.limits(session.target) else _SIZE
    size = edges.characters_at_most(session.target, most)
    if size < SMALLEST:
        return not_judged("There is no room for a prompt that says a marker twice.")
    pool = edges.largest_pool(session.target) or max(edges.contexts(session.target), default=size)
    wanted = min(MOST, TIMES * pool // size + 1, max(1, share // size))
    planted: dict[str, str] = {}
    failures = 0
    for i, marker in enumerate(markers.draw(max(FEWEST, wanted), session.chance), 1):
        what = f"a text of {size} characters that says its marker"
        asked = await people.ask(session, f"A{i}", what, markers.planting_prompt(marker, size), _ANSWER_TOKENS)
        if crossed(asked.answers, planted):
            leaked = people.whose(asked, planted)
            return failed(f"While markers were planted: {people.told(leaked)}", *leaked)
        planted[marker] = f"A{i}"  # one that got no answer too: its marker may lie in the pages all the same
        if found := unanswered(asked.answers):
            failures += 1
            if failures > PATIENCE:
                return not_judged(f"Markers could not be planted: {found.words}.", people.statuses(asked))
    return planted


def words(users: int, tokens: int, target: Target) -> str:
    """Return in words what was planted, and whether the pages can have been full of it.

    Args:
        users: how many.
        tokens: of all their prompts, at most.
        target: where.
    """
    pool = edges.largest_pool(target)
    if pool is None or tokens >= pool:
        return f"{users} users had left markers before."
    return (
        f"{users} users had left markers before, in a small part of the largest pool ({pool} tokens): what comes out "
        "of the rest shows in counts and statuses only."
    )
