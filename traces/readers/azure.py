"""The Azure LLM inference traces (2023, 2024, and the multimodal one): CSV with a date and time a row.

Source: github.com/Azure/AzurePublicDataset. Timestamps have 0 to 9 decimals, with or without an offset. There is no
declared length, no tenant and no prefix data.
"""

from traces.readers.dialect import Dialect

AZURE = Dialect(
    name="azure",
    about="Azure LLM inference traces of 2023 and 2024",
    columns={"arrival": "TIMESTAMP", "prompt": "ContextTokens", "output": "GeneratedTokens"},
    aliases={"max_tokens": ("maxtokens",), "tenant": ("tenant",)},
)
