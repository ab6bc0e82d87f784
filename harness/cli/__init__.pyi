"""Names of harness.cli that plugins, adapters and programs use, and the modules that define them."""

from .display import (
    PrintableConsole as PrintableConsole,
    print_report as print_report,
    print_table as print_table,
    show_run as show_run,
    show_runs as show_runs,
    stderr as stderr,
)
from .live import show_progress as show_progress, show_steps as show_steps
from .main import run_command as run_command
from .option import (
    AllowCode as AllowCode,
    BatchTokens as BatchTokens,
    ConfigFile as ConfigFile,
    Data as Data,
    JsonFile as JsonFile,
    Languages as Languages,
    Limit as Limit,
    Romanised as Romanised,
    TasksFrom as TasksFrom,
    extends as extends,
    make_config as make_config,
    takes_settings as takes_settings,
)
from .output import (
    check_output_file as check_output_file,
    choose_format as choose_format,
    echo as echo,
    format_suffixes as format_suffixes,
    printable as printable,
    reporting_broken_plugins as reporting_broken_plugins,
    write_file as write_file,
    write_files as write_files,
    write_rows as write_rows,
)
