"""report: a result directory as one HTML page that needs no network and, to be read, no script.

Read in this order: `reading` (what lies in the directory), `runs` (an account of runs that have none), `page` (the
sections), `asked` (the scenario), `elements` (markup, and how text stays text), `drawings` (SVG files, as far as they
are drawings), `seal` (how a page is known again).
"""

from simulator.report.page import page_of, report
from simulator.report.reading import chapters

__all__ = ["chapters", "page_of", "report"]
