"""Names of harness.data that plugins, adapters and programs use, and the modules that define them."""

from .buckets import Bucket as Bucket
from .features import Feature as Feature, FeatureContext as FeatureContext, Items as Items, Spans as Spans
from .gold import GoldFile as GoldFile, read_gold as read_gold
from .origin import Origin as Origin
from .pool import CandidatePool as CandidatePool
from .readers.column import (
    COLUMNS as COLUMNS,
    Column as Column,
    pick as pick,
    wanted_columns as wanted_columns,
    wanted_records as wanted_records,
)
from .readers.conllu import (
    Sentence as Sentence,
    Token as Token,
    TreebankError as TreebankError,
    read_sentences as read_sentences,
    surface as surface,
    text_of as text_of,
    token_of as token_of,
)
from .readers.delimited import CSV as CSV, TSV as TSV
from .readers.reader import Reader as Reader, choice as choice
from .readers.squad import SQUAD as SQUAD
from .readers.structured import (
    JSONL as JSONL,
    PARQUET as PARQUET,
    parse_json as parse_json,
    read_jsonl as read_jsonl,
    read_parquet as read_parquet,
    source_columns as source_columns,
)
from .readers.text import (
    is_blank_line as is_blank_line,
    is_blank_row as is_blank_row,
    line_of_text as line_of_text,
    numbered_lines as numbered_lines,
    whole_text as whole_text,
    without_blank_lines as without_blank_lines,
)
from .records import (
    BitextExample as BitextExample,
    ClassificationExample as ClassificationExample,
    Example as Example,
    MarkedText as MarkedText,
    MultipleChoiceExample as MultipleChoiceExample,
    Prediction as Prediction,
    RetrievalPair as RetrievalPair,
    Row as Row,
    SourceText as SourceText,
    SpanExample as SpanExample,
    TaggedSentence as TaggedSentence,
    TextPair as TextPair,
)
from .resolve import (
    DataRef as DataRef,
    HubFiles as HubFiles,
    ResolvedData as ResolvedData,
    SourceState as SourceState,
    State as State,
    WebFiles as WebFiles,
)
from .sampling import draw as draw
from .sources import (
    DataFinder as DataFinder,
    FoundData as FoundData,
    data_ref as data_ref,
    find_split as find_split,
)
from .translation.aligners import (
    Aligner as Aligner,
    Alignment as Alignment,
    AlignsWords as AlignsWords,
    Link as Link,
    WordPair as WordPair,
    check_alignments as check_alignments,
)
from .translation.guards import GuardReport as GuardReport, guard_translations as guard_translations
from .translation.translators import (
    Translation as Translation,
    Translator as Translator,
    TranslatorContext as TranslatorContext,
    TranslatorEntry as TranslatorEntry,
    TranslatorInfo as TranslatorInfo,
)
from .translation.transliterators import Transliterator as Transliterator
from .translation.variants import LostAnswers as LostAnswers, TextChange as TextChange
