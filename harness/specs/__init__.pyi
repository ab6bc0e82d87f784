"""Names of harness.specs that plugins, adapters and programs use, and the modules that define them."""

from .catalog import Catalog as Catalog
from .loading import Document as Document, read_yaml as read_yaml
from .prompt import ALL_LANGUAGES as ALL_LANGUAGES, Literals as Literals, PromptSpec as PromptSpec
from .published import PublishedSpec as PublishedSpec
from .schema import (
    SPLITS as SPLITS,
    Code as Code,
    Name as Name,
    Provenance as Provenance,
    Source as Source,
    SpecModel as SpecModel,
    SuiteSpec as SuiteSpec,
    TaskSpec as TaskSpec,
    TrainingSpec as TrainingSpec,
    source_language as source_language,
)
from .selection import (
    SelectedTask as SelectedTask,
    language_codes as language_codes,
    select as select,
    split_names as split_names,
)
from .task_entry import TaskEntry as TaskEntry, described_languages as described_languages
from .task_source import MadeTask as MadeTask, TaskSource as TaskSource
from .validating import read_model as read_model, validate_document as validate_document
