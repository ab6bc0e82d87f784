"""Names of harness.data that plugins, adapters and programs use, and the modules that define them."""

from .features import (
    Bucket as Bucket,
    Feature as Feature,
    FeatureContext as FeatureContext,
    Items as Items,
    Spans as Spans,
)
from .gold import GoldFile as GoldFile, read_gold as read_gold
from .origin import Origin as Origin
from .readers.conllu import (
    Sentence as Sentence,
    Token as Token,
    TreebankError as TreebankError,
    read_sentences as read_sentences,
    surface as surface,
    text_of as text_of,
    token_of as token_of,
)
from .readers.reader import (
    COLUMNS as COLUMNS,
    Column as Column,
    Reader as Reader,
    choice as choice,
    is_blank_line as is_blank_line,
    is_blank_row as is_blank_row,
    line_of_text as line_of_text,
    numbered_lines as numbered_lines,
    pick as pick,
    wanted_columns as wanted_columns,
    wanted_records as wanted_records,
    whole_text as whole_text,
    without_blank_lines as without_blank_lines,
)
from .readers.squad import SQUAD as SQUAD
from .readers.tabular import (
    CSV as CSV,
    JSONL as JSONL,
    PARQUET as PARQUET,
    TSV as TSV,
    parse_json as parse_json,
    read_json as read_json,
    read_jsonl as read_jsonl,
    read_parquet as read_parquet,
    source_columns as source_columns,
)
from .records import (
    BitextExample as BitextExample,
    CandidatePool as CandidatePool,
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
    draw as draw,
)
from .resolve import (
    DataRef as DataRef,
    HubFiles as HubFiles,
    ResolvedData as ResolvedData,
    SourceState as SourceState,
    State as State,
    WebFiles as WebFiles,
)
from .sources import (
    DataFinder as DataFinder,
    FoundData as FoundData,
    data_ref as data_ref,
    find_split as find_split,
)
from .translation.guards import GuardReport as GuardReport, guard_translations as guard_translations
from .translation.services import (
    Aligner as Aligner,
    Alignment as Alignment,
    AlignsWords as AlignsWords,
    Link as Link,
    Translation as Translation,
    Translator as Translator,
    TranslatorContext as TranslatorContext,
    TranslatorEntry as TranslatorEntry,
    TranslatorInfo as TranslatorInfo,
    Transliterator as Transliterator,
    WordPair as WordPair,
    check_alignments as check_alignments,
)
from .translation.variants import LostAnswers as LostAnswers, TextChange as TextChange
