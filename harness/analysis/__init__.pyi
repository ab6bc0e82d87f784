"""Names of harness.analysis that plugins, adapters and programs use, and the modules that define them."""

from .comparison import (
    LanguageComparison as LanguageComparison,
    TaskComparison as TaskComparison,
    compare_group as compare_group,
)
from .diagnosis import DiagnosisOptions as DiagnosisOptions, diagnose as diagnose
from .history import Series as Series, read_histories as read_histories
from .items import spans_of as spans_of
from .merge import merge_runs as merge_runs
from .rescoring import relabel as relabel, rescore as rescore
from .significance import Difference as Difference, Scores as Scores
from .systems import (
    System as System,
    SystemGroup as SystemGroup,
    group_systems as group_systems,
    run_difference_notes as run_difference_notes,
)
