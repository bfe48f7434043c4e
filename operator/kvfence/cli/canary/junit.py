"""The report as JUnit XML, which CI systems show: one test case for each check.

There is no one schema. This is valid for both that are in use: the one of Ant's JUnit task (attributes in full, times
without a zone) and the one of Jenkins' xUnit plugin.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kvfence.cli.canary.report import Verdict
from kvfence.cli.canary.statement import statement

if TYPE_CHECKING:
    from kvfence.cli.canary.report import Judged, Report

SUITE = "kvfence.canary"

_ELEMENTS = {Verdict.FAIL: "failure", Verdict.NOT_JUDGED: "skipped", Verdict.BROKEN: "error"}

_NO_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold in any spelling."""


def as_junit(report: Report) -> str:
    """Return the report as XML, with a line's end."""
    count = {verdict: sum(judged.verdict is verdict for judged in report.checks) for verdict in Verdict}
    root = Element("testsuites")
    suite = SubElement(
        root,
        "testsuite",
        {
            "name": SUITE,
            "package": SUITE,
            "id": "0",
            "hostname": "localhost",  # as the schema wants it where it is not known
            "timestamp": report.began.strftime("%Y-%m-%dT%H:%M:%S"),
            "time": f"{report.seconds:.3f}",
            "tests": str(len(report.checks) + len(report.left_out)),
            "failures": str(count[Verdict.FAIL]),
            "errors": str(count[Verdict.BROKEN]),
            "skipped": str(count[Verdict.NOT_JUDGED] + len(report.left_out)),
        },
    )
    properties = SubElement(suite, "properties")
    for name, value in (("target", report.name), ("model", report.target.model if report.target else "")):
        if value:
            SubElement(properties, "property", {"name": name, "value": _fit(value)})
    for judged in report.checks:
        _case(suite, judged)
    for one in report.left_out:
        case = SubElement(suite, "testcase", {"name": one.check.value, "classname": SUITE, "time": "0.000"})
        SubElement(case, "skipped", {"message": _fit(f"left out: {one.why}")})
    SubElement(suite, "system-out").text = _fit(_said(report))
    SubElement(suite, "system-err").text = _fit("\n".join(report.notes))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _case(suite: Element, judged: Judged) -> None:
    attributes = {"name": judged.check.value, "classname": SUITE, "time": f"{judged.seconds:.3f}"}
    case = SubElement(suite, "testcase", attributes)
    kind = _ELEMENTS.get(judged.verdict)
    if kind is not None:
        typed = {} if judged.verdict is Verdict.NOT_JUDGED else {"type": judged.verdict.value}
        told = SubElement(case, kind, {"message": _fit(judged.reason), **typed})
        told.text = _fit("\n".join(judged.evidence))


def _said(report: Report) -> str:
    """Return what a pass has to say: a test case that passed has no place for it in the schemas."""
    lines = []
    for judged in report.checks:
        if judged.verdict is Verdict.PASS:
            seen = [judged.reason] if judged.reason else []
            seen += [statement(judged.probing)] if judged.probing is not None else []
            lines.append(" ".join([f"{judged.check.value}:", *seen]))
    return "\n".join(lines)


def _fit(text: str) -> str:
    """Return the text without what XML cannot hold: it may quote a server."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
