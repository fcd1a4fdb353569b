"""Tables of any origin: CSV with a header, JSON lines or Parquet, with columns named by the caller or by custom.

Customary names mark the columns of prompt and output, of the arrival where just one fits, and of max_tokens, tenant,
priority and session. The unit of times is never guessed: a file in ms looks like a slow one in s. Prefix data is not
read.
"""

from traces.readers.dialect import Dialect

ALIASES = {
    "arrival": ("arrival", "arrivaltime", "arrivaltimestamp", "arrivedat", "timestamp"),
    "prompt": (
        "contexttokens",
        "inputlen",
        "inputlength",
        "inputtokens",
        "numprefilltokens",
        "numprompttokens",
        "prompt",
        "promptlen",
        "promptlength",
        "promptsize",
        "prompttokens",
    ),
    "output": (
        "completiontokens",
        "generatedtokens",
        "numdecodetokens",
        "numoutputtokens",
        "output",
        "outputlen",
        "outputlength",
        "outputtokens",
        "tokensize",
    ),
    "max_tokens": ("maxtokens",),
    "tenant": ("tenant",),
    "priority": ("priority",),
    "session": ("conversationid", "session", "sessionid"),
}

TABLE = Dialect(name="table", about="Any other CSV, JSON lines or Parquet, with --columns and --unit", aliases=ALIASES)
