"""Names of harness.planning that plugins, adapters and programs use, and the modules that define them."""

from .evaluated_split import EvaluatedSplit as EvaluatedSplit, evaluated_on as evaluated_on
from .plan import Model as Model, Plan as Plan, require_cells as require_cells
from .planner import resolve_model as resolve_model
from .prompts import DEFAULT_PRESET as DEFAULT_PRESET
from .resolution import LockedSplit as LockedSplit, resolve_tasks as resolve_tasks
from .run_config import (
    OUTPUT as OUTPUT,
    RUN as RUN,
    RunConfig as RunConfig,
    data_options as data_options,
    key_values as key_values,
    settings as settings,
)
from .shards import Shard as Shard, shard_sizes as shard_sizes, shared_fits as shared_fits
from .task_checks import CheckedItems as CheckedItems, CheckSetting as CheckSetting
from .translations import (
    MACHINE_VARIANTS as MACHINE_VARIANTS,
    TrainVariants as TrainVariants,
    VariantPlanner as VariantPlanner,
)
