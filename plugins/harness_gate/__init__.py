"""The gate: GO, NO-GO or INCONCLUSIVE for a run against an earlier one, for CI. It adds no hooks."""
