"""Names of harness.languages that plugins, adapters and programs use, and the modules that define them."""

from .character import is_extender as is_extender, is_unspaced as is_unspaced, is_wordlike as is_wordlike
from .detection import (
    LEAST_DETECTED as LEAST_DETECTED,
    SCRIPTS as SCRIPTS,
    detected_code as detected_code,
    language_detector as language_detector,
    other_language as other_language,
    script_counts as script_counts,
    script_of_texts as script_of_texts,
    text_scripts as text_scripts,
)
from .segmentation import character_counts as character_counts, word_counts as word_counts, words as words
from .table import (
    Language as Language,
    LanguageTable as LanguageTable,
    known_languages as known_languages,
    recorded_name as recorded_name,
)
