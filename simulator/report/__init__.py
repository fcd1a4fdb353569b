"""report: a result directory as one HTML page that needs no network and, to be read, no script.

Read in this order: `reading` (what lies in the directory), `runs` (an account of runs that have none), `page` (the
sections), `elements` (markup, and how text stays text), `drawings` (SVG files, as far as they are drawings).
"""

from simulator.report.page import report

__all__ = ["report"]
