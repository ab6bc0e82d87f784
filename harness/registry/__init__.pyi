"""Names of harness.registry that plugins, adapters and programs use, and the modules that define them."""

from .declarations import (
    FleetBackend as FleetBackend,
    FleetJob as FleetJob,
    JobRunner as JobRunner,
    JobState as JobState,
    Launcher as Launcher,
    LoggedResults as LoggedResults,
    ReportFormat as ReportFormat,
    ReportSection as ReportSection,
    TaskChecks as TaskChecks,
    TrackedRun as TrackedRun,
    Tracker as Tracker,
)
from .plugin import installed_version as installed_version
from .registry import Registry as Registry
