"""Drawings: an SVG file as part of a page. Only what draws comes through: no script, no style sheet, no address.

Ids are made the page's own with a prefix, so that two drawings on a page cannot be confused.
"""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

from simulator.errors import InputError
from simulator.report.elements import Markup

SVG = "{http://www.w3.org/2000/svg}"
ELEMENTS = frozenset(["svg", "g", "defs", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "use",
                      "clipPath", "pattern", "image", "title"])
ATTRIBUTES = frozenset([
    "id", "class", "d", "x", "y", "x1", "y1", "x2", "y2", "width", "height", "cx", "cy", "r", "rx", "ry", "points",
    "transform", "viewBox", "style", "fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity",
    "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "stroke-dashoffset", "stroke-miterlimit", "opacity",
    "clip-path", "clip-rule", "pointer-events", "patternUnits", "patternTransform", "preserveAspectRatio", "href"])
PLAIN = re.compile(r"[\w\s.,:;#%()+/=-]*")
"""Values of attributes: numbers, names and functions, and no quotes."""
OWN = re.compile(r"url\(#([\w.-]+)\)")
PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")


def drawing(text: str, prefix: str, alt: str) -> Markup:
    """The drawing, read aloud as `alt`. Raises InputError for what is no SVG."""
    if "<!ENTITY" in text:
        raise InputError("it defines entities, which no drawing of batchsim does")
    try:
        return _drawing(ElementTree.fromstring(text), prefix, alt)
    except ElementTree.ParseError as error:
        raise InputError(f"it is no SVG ({error})") from None
    except RecursionError:
        raise InputError("it is nested too deeply") from None


def _drawing(root: ElementTree.Element, prefix: str, alt: str) -> Markup:
    if root.tag != f"{SVG}svg":
        raise InputError(f"it is no SVG: its first element is {root.tag}")
    box = _attribute("viewBox", root.get("viewBox", ""), prefix)
    inside = "".join(_markup(child, prefix) for child in root)
    return Markup(f'<svg role="img" aria-label="{escape(alt)}"{box}>{inside}</svg>')


def _markup(node: ElementTree.Element, prefix: str) -> str:
    """An element and all below it; empty for what is not drawn."""
    name = node.tag.removeprefix(SVG)
    if name not in ELEMENTS or not node.tag.startswith(SVG):
        return ""
    given = "".join(_attribute(key.rpartition("}")[2], value, prefix) for key, value in node.attrib.items())
    text = escape((node.text or "").strip()) if name == "title" else ""
    return f"<{name}{given}>{text}{''.join(_markup(child, prefix) for child in node)}</{name}>"


def _attribute(name: str, value: str, prefix: str) -> str:
    if name not in ATTRIBUTES:
        return ""
    if name == "id":
        value = f"{prefix}-{value}"
    if name == "href":
        value = f"#{prefix}-{value[1:]}" if value.startswith("#") else value if PICTURE.fullmatch(value) else ""
    elif "url(" in OWN.sub("", value).lower() or not PLAIN.fullmatch(value):
        return ""
    return f' {name}="{escape(OWN.sub(lambda match: f"url(#{prefix}-{match[1]})", value))}"'
