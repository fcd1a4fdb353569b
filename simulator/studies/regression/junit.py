"""JUnit: a regression check as the XML that CI systems read. It measures nothing.

A baseline is a suite, a metric is a test. What was not compared is an error, so that nobody takes it for a pass.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from simulator.studies.regression.comparing import Change
from simulator.studies.regression.found import Compared, Regression
from simulator.studies.regression.names import shown
from simulator.studies.regression.tables import moved

SUITES = "batchsim regress"
UNWANTED = re.compile("[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML 1.0 has no place for."""


def junit(found: Regression) -> str:
    """The document."""
    suites = Element("testsuites", name=SUITES)
    for each in found.compared or (Compared(SUITES, reason=found.reason),):
        _suite(suites, each)
    for count in ("tests", "failures", "errors"):
        suites.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    indent(suites)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{tostring(suites, encoding='unicode')}\n"


def _suite(suites: Element, each: Compared) -> None:
    errors = len(each.missing) + (not each.changes)
    suite = SubElement(suites, "testsuite", name=_text(each.name), tests=str(len(each.changes) + (not each.changes)),
                       failures=str(len(each.failed)), errors=str(errors), skipped="0")
    if not each.changes:
        case = SubElement(suite, "testcase", classname=_text(each.name), name="compared")
        SubElement(case, "error", message=_text(each.reason), type=each.outcome)
    for change in each.changes:
        _case(SubElement(suite, "testcase", classname=_text(each.name), name=_text(change.name)), change, each)


def _case(case: Element, change: Change, each: Compared) -> None:
    if change.verdict == "not compared":
        SubElement(case, "error", message=_text(change.reason), type=change.verdict)
    elif change.fails:
        told = (f"{change.label}: {shown(change.before)} -> {shown(change.after)} ({moved(change)}, tolerance "
                f"{change.tolerance})")
        failure = SubElement(case, "failure", message=_text(told), type=change.verdict)
        if change in each.largest:
            failure.text = _text("\n".join(each.attribution(change))) or None


def _text(words: str) -> str:
    return UNWANTED.sub("?", words)
