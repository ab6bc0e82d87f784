"""Names of harness.planning that plugins, adapters and programs use, and the modules that define them."""

from .evaluated_split import EvaluatedSplit as EvaluatedSplit, evaluated_on as evaluated_on
from .id_alignment import (
    ItemIds as ItemIds,
    is_numbered as is_numbered,
    misalignment as misalignment,
    pairing_order as pairing_order,
    stands_for_source as stands_for_source,
)
from .origin import Origin as Origin
from .plan import Model as Model, Plan as Plan, require_cells as require_cells
from .planner import resolve_model as resolve_model
from .prompts import DEFAULT_PRESET as DEFAULT_PRESET
from .resolution import LockedSplit as LockedSplit, TasksResolver as TasksResolver
from .run_config import (
    OUTPUT as OUTPUT,
    RUN as RUN,
    RunConfig as RunConfig,
    data_options as data_options,
    key_values as key_values,
    settings as settings,
)
from .shards import Shard as Shard, shard_sizes as shard_sizes, shared_fits as shared_fits
from .spec_checks import check_task as check_task
from .task_audit import Finding as Finding, Note as Note, TaskAudit as TaskAudit
from .task_checks import CheckedItems as CheckedItems, CheckSetting as CheckSetting
from .translations import (
    MACHINE_VARIANTS as MACHINE_VARIANTS,
    TrainVariants as TrainVariants,
    VariantPlanner as VariantPlanner,
    source_language as source_language,
)
from .word_checks import needed_words as needed_words
