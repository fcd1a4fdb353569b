"""The Azure LLM inference traces (2023 and 2024): CSV with TIMESTAMP, ContextTokens, GeneratedTokens.

Source: github.com/Azure/AzurePublicDataset. Timestamps are dates with a time of 0 to 9 decimals, with or
without an offset. There is no declared length, no tenant and no prefix data.
"""

from traces.readers.dialect import Dialect

AZURE = Dialect(
    name="azure",
    shape="csv",
    columns={"arrival": "TIMESTAMP", "prompt": "ContextTokens", "output": "GeneratedTokens"},
    aliases={"max_tokens": ("maxtokens",), "tenant": ("tenant",)},
)
