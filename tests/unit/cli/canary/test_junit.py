from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from kvfence.cli.canary.junit import as_junit
from kvfence.cli.canary.report import Report
from tests.unit.cli.canary.reports import ALL, FAILED, LEAKED, report


def suite_of(given: Report) -> ElementTree.Element:
    root = ElementTree.fromstring(as_junit(given).encode())
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    return suite


def test_each_verdict_is_what_junit_has_for_it() -> None:
    cases = {case.attrib["name"]: [child.tag for child in case] for case in suite_of(ALL).findall("testcase")}
    assert cases == {
        "MarkerIsolation": [],
        "OverlongPrompt": ["failure"],
        "SaltIsolation": ["skipped"],
        "StreamErrors": ["error"],
        "RouterPairing": ["skipped"],
    }


def test_the_counts_are_those_of_the_cases() -> None:
    told = suite_of(ALL).attrib
    assert (told["tests"], told["failures"], told["errors"], told["skipped"]) == ("5", "1", "1", "2")


def test_a_failure_says_whose_marker_came_out_of_whose_answer() -> None:
    failure = suite_of(ALL).find("testcase/failure")
    assert failure is not None
    assert failure.attrib == {"message": "A prompt that did not fit was answered.", "type": "fail"}
    assert failure.text == LEAKED


def test_what_the_strict_schema_asks_for_is_there_and_in_its_order() -> None:
    suite = suite_of(ALL)
    assert [child.tag for child in suite] == ["properties", *["testcase"] * 5, "system-out", "system-err"]
    assert {"name", "package", "id", "hostname", "timestamp", "time", "tests", "failures", "errors"} <= set(
        suite.attrib
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    for case in suite.findall("testcase"):
        assert set(case.attrib) == {"name", "classname", "time"}
        assert re.fullmatch(r"\d+\.\d{3}", case.attrib["time"])
        for told in case:
            assert set(told.attrib) == ({"message"} if told.tag == "skipped" else {"message", "type"})


@pytest.mark.parametrize(
    "hostile", ["a\x1b[31mb", "a\0b", "a\ud800b", "a\ufffeb", "</failure><x/>", "a & b ]]>", "a\u202eb"]
)
def test_what_a_server_said_cannot_break_the_document(hostile: str) -> None:
    failure = suite_of(report(replace(FAILED, reason=hostile, evidence=(hostile,)))).find("testcase/failure")
    assert failure is not None
    assert "\x1b" not in failure.attrib["message"]
    assert failure.text


def test_a_target_that_could_not_be_examined_has_a_document_too() -> None:
    properties = suite_of(replace(ALL, target=None)).findall("properties/property")
    assert [one.attrib for one in properties] == [{"name": "target", "value": ALL.name}]
