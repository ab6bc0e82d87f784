"""Names of harness.reporting that plugins, adapters and programs use, and the modules that define them."""

from .blocks.chart import Bar as Bar, BarChart as BarChart, CurveChart as CurveChart, Line as Line
from .blocks.model import (
    BLANK as BLANK,
    Block as Block,
    Charts as Charts,
    Field as Field,
    Fold as Fold,
    Note as Note,
    Notes as Notes,
    Report as Report,
    Section as Section,
    Table as Table,
    TableRow as TableRow,
    anchor as anchor,
    make_table as make_table,
    rows_of as rows_of,
)
from .blocks.number import (
    INTERVAL_LEGEND as INTERVAL_LEGEND,
    interval_text as interval_text,
    p_text as p_text,
    percent as percent,
    signed as signed,
    signed_interval as signed_interval,
    uncertainty as uncertainty,
)
from .blocks.words import counted as counted
from .comparison.history import history_figure as history_figure
from .cost.cost import EquityReport as EquityReport, equity_report as equity_report
from .cost.table import SIDE_LEGEND as SIDE_LEGEND, side_notes as side_notes, side_table as side_table
from .overview.column import conditions_of as conditions_of, system_names as system_names
from .overview.matrix import Matrix as Matrix, matrices as matrices
from .overview.means import (
    ADDED as ADDED,
    PROVENANCE_MARKS as PROVENANCE_MARKS,
    Contrast as Contrast,
    Estimate as Estimate,
    contrast as contrast,
    is_added as is_added,
    origin_mark as origin_mark,
)
from .overview.run_remarks import few_items as few_items
from .overview.summary import read_material as read_material
from .overview.summary_blocks import (
    error_table as error_table,
    system_table as system_table,
    systems_latex as systems_latex,
)
from .render.console import (
    SAMPLE_WARNING as SAMPLE_WARNING,
    print_blocks as print_blocks,
    sparkline as sparkline,
)
from .render.page import Figure as Figure, page as page, render_html as render_html, template as template
from .render.text import (
    csv_text as csv_text,
    render_latex as render_latex,
    render_markdown as render_markdown,
)
from .sections import (
    SectionReport as SectionReport,
    installed_sections as installed_sections,
    read_sections as read_sections,
)
from .weakness.items import item_text as item_text
