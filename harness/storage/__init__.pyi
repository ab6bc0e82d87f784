"""Names of harness.storage that plugins, adapters and programs use, and the modules that define them."""

from .file_lock import FileLock as FileLock
from .files import (
    WEIGHT_SUFFIXES as WEIGHT_SUFFIXES,
    FileNotWrittenError as FileNotWrittenError,
    cache_folder as cache_folder,
    configuration_files as configuration_files,
    file_digest as file_digest,
    publish as publish,
    write_atomically as write_atomically,
)
from .records import ItemRecord as ItemRecord, read_columns as read_columns
from .redaction import add_secret as add_secret, clean_json as clean_json, clean_text as clean_text
from .results import (
    CellResult as CellResult,
    MetricValue as MetricValue,
    RunResults as RunResults,
    SuiteScore as SuiteScore,
    SuiteSummary as SuiteSummary,
    TaskScore as TaskScore,
    TaskSummary as TaskSummary,
)
from .run_folder import RESULTS as RESULTS, run_folders as run_folders, with_baselines as with_baselines
