"""Names of harness.running that plugins, adapters and programs use, and the modules that define them."""

from .cell_reader import CellReader as CellReader
from .fleet import (
    FleetBackend as FleetBackend,
    FleetJob as FleetJob,
    JobRunner as JobRunner,
    JobState as JobState,
)
from .launch import PARENT_LOCK as PARENT_LOCK, STATUS_VARIABLE as STATUS_VARIABLE
from .processes import Launcher as Launcher
from .session import (
    Prepared as Prepared,
    Session as Session,
    open_session as open_session,
    prepare as prepare,
)
from .signals import Interruption as Interruption
from .start import make_metrics_ready as make_metrics_ready
from .trackers import (
    LoggedResults as LoggedResults,
    TrackedRun as TrackedRun,
    Tracker as Tracker,
)
