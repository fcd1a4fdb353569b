"""BurstGPT: CSV of a campus's ChatGPT and GPT-4 requests, read by column name.

Source: github.com/HPMLL/BurstGPT. Times are whole seconds from the local midnight of the first day. A response of 0
tokens is a failed request. Later files have a session, empty for requests of the API log.
"""

from traces.readers.dialect import Dialect

BURSTGPT = Dialect(
    name="burstgpt",
    about="BurstGPT, chat and API logs, with or without failures",
    columns={"arrival": "Timestamp", "prompt": "Request tokens", "output": "Response tokens"},
    optional={"session": "Session ID", "tenant": "Log Type"},
    unit="s",
    fails=True,
)
