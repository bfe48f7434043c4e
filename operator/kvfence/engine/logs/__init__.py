"""Reads what SGLang and vLLM print as they start: which pool each scheduler ended up with, and which context.

A log is text that anybody may have cut, pasted, mixed or written into. What it does not tell stays unknown.

Known limit: a log that was cut at a column (`cut -c1-80`) is known by different lines of it that end there. Where one
line alone reaches the column, and it cuts a number, the shortened number is read as the number.
"""

from kvfence.engine.logs.reading import read

__all__ = ["read"]
