"""Names of harness.kinds that plugins, adapters and programs use, and the modules that define them."""

from .kind import (
    ReadContext as ReadContext,
    TaskKind as TaskKind,
    cluster_of as cluster_of,
    group_of as group_of,
    id_of as id_of,
    label_of as label_of,
    meta_of as meta_of,
    read_examples as read_examples,
    text_of as text_of,
)
from .methods import (
    Method as Method,
    MethodContext as MethodContext,
    choice_methods as choice_methods,
    generate_method as generate_method,
    head_method as head_method,
)
