"""The candidates of a retrieval task, read once and shared by its languages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

from harness.data.records import Candidate
from harness.errors import DataError


class CandidatePool:
    """All candidates of a task, in the order of the files."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        *,
        owner: str,
        languages: Sequence[str] = (),
        missing: Sequence[str] = (),
    ) -> None:
        """Keep the candidates; raises `DataError` where there are none or an id repeats.

        Args:
            candidates: In the order in which ties are broken.
            owner: The task, for messages.
            languages: Those whose files were read, where every language adds its own.
            missing: Languages whose files were not found: scores are then those of a smaller pool.
        """
        self.candidates = candidates
        self.owner = owner
        self.languages = tuple(languages)
        self.missing = tuple(missing)
        if not candidates:
            raise DataError(f"The candidate pool of {owner!r} is empty.")
        self.row_of: dict[str, int] = {}
        for row, candidate in enumerate(candidates):
            if self.row_of.setdefault(candidate.id, row) != row:
                raise DataError(
                    f"The candidate id {candidate.id!r} of {owner!r} occurs twice in its pool, as candidates "
                    f"{self.row_of[candidate.id] + 1} and {row + 1}; ids must be unique."
                )

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def answering(self) -> Mapping[str, tuple[Candidate, ...]]:
        """Query id -> the candidates whose rows say that they answer it."""
        by_query: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            for query in candidate.answers:
                by_query.setdefault(query, []).append(candidate)
        return {query: tuple(answers) for query, answers in by_query.items()}

    @cached_property
    def digest(self) -> str:
        """A digest of all ids and texts."""
        state = hashlib.blake2b(digest_size=16)
        for candidate in self.candidates:
            state.update(f"{candidate.id}\0{candidate.text}\0".encode())
        return state.hexdigest()
