"""Names of harness.checks that plugins, adapters and programs use, and the modules that define them."""

from .id_alignment import (
    ItemIds as ItemIds,
    is_numbered as is_numbered,
    misalignment as misalignment,
    pairing_order as pairing_order,
    stands_for_source as stands_for_source,
)
from .prompt_checks import needed_words as needed_words
from .spec_checks import check_task as check_task
from .task_audit import Finding as Finding, Note as Note, TaskAudit as TaskAudit
