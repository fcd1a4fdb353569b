"""splitwise-sim's traces: CSV with seconds, prompt and token sizes, and an application.

Source: github.com/Mutinifni/splitwise-sim. The application becomes the tenant. The batch size of a row and its type
are not read.
"""

from traces.readers.dialect import Dialect

SPLITWISE = Dialect(
    name="splitwise-sim",
    about="splitwise-sim's traces",
    columns={"arrival": "arrival_timestamp", "prompt": "prompt_size", "output": "token_size"},
    optional={"tenant": "application_id"},
    marks=("request_type", "arrival_timestamp", "prompt_size", "token_size"),
    unit="s",
)
