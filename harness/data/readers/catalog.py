"""The readers that the core brings."""

from __future__ import annotations

from harness.data.readers.bitext import BITEXT
from harness.data.readers.bracketed import BRACKETED
from harness.data.readers.conllu import CONLLU
from harness.data.readers.delimited import CSV, TSV
from harness.data.readers.squad import SQUAD, SQUAD_RECORDS
from harness.data.readers.structured import JSON, JSONL, PARQUET
from harness.data.readers.tagged import TAGGED

READERS = (BITEXT, BRACKETED, CONLLU, CSV, JSON, JSONL, PARQUET, SQUAD, SQUAD_RECORDS, TAGGED, TSV)
