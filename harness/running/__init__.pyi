"""Names of harness.running that plugins, adapters and programs use, and the modules that define them."""

from .cell_reader import CellReader as CellReader
from .cell_writer import inputs_digest as inputs_digest, inputs_text as inputs_text
from .processes import (
    PARENT_LOCK as PARENT_LOCK,
    STATUS_VARIABLE as STATUS_VARIABLE,
    Interruption as Interruption,
)
from .run import execute as execute
from .session import (
    Prepared as Prepared,
    Session as Session,
    open_session as open_session,
    prepare as prepare,
)
from .start import make_metrics_ready as make_metrics_ready
