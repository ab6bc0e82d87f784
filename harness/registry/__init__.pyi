"""Names of harness.registry that plugins, adapters and programs use, and the modules that define them."""

from .registry import Registry as Registry
from .requirement import installed_version as installed_version
