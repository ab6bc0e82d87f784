"""Names of harness.specs that plugins, adapters and programs use, and the modules that define them."""

from .catalog import Catalog as Catalog
from .documents import (
    ALL_LANGUAGES as ALL_LANGUAGES,
    Literals as Literals,
    PromptSpec as PromptSpec,
    PublishedSpec as PublishedSpec,
)
from .loading import Document as Document, read_yaml as read_yaml
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
from .task_entry import (
    MadeTask as MadeTask,
    TaskEntry as TaskEntry,
    TaskSource as TaskSource,
    described_languages as described_languages,
)
from .validating import read_model as read_model, validate_document as validate_document
