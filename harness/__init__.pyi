"""Types of the public surface; `harness/__init__.py` imports each name from the module named here."""

from . import (
    analysis as analysis,
    cli as cli,
    data as data,
    kinds as kinds,
    languages as languages,
    metrics as metrics,
    models as models,
    planning as planning,
    prompts as prompts,
    registry as registry,
    reporting as reporting,
    running as running,
    scores as scores,
    specs as specs,
    statistics as statistics,
    storage as storage,
    testing as testing,
)
from .api import compare_runs as compare_runs, evaluate as evaluate, load as load
from .errors import (
    AdapterError as AdapterError,
    CapabilityError as CapabilityError,
    ContractError as ContractError,
    DataError as DataError,
    DuplicateNameError as DuplicateNameError,
    HarnessError as HarnessError,
    MissingDataError as MissingDataError,
    MissingExtraError as MissingExtraError,
    PluginError as PluginError,
    Problem as Problem,
    SpecError as SpecError,
    StorageError as StorageError,
    TrainingError as TrainingError,
    UnknownNameError as UnknownNameError,
    UsageError as UsageError,
    near_names as near_names,
    require_extra as require_extra,
    warn_deprecated as warn_deprecated,
)
from .hookspecs import hookimpl as hookimpl
from .progress import Progress as Progress, show_step as show_step
from .reporting.overview.overview import LoadedRun as LoadedRun
from .running.session import open_session as open_session
from .storage.run_folder import Run as Run
from .table import (
    NamedTable as NamedTable,
    distinguishing as distinguishing,
    grouped as grouped,
    table_rows as table_rows,
)

__version__: str
