"""Names of harness.prompts that plugins, adapters and programs use, and the modules that define them."""

from .asking import generate_answers as generate_answers
from .preset import (
    CompiledPrompt as CompiledPrompt,
    PromptItem as PromptItem,
    choose_literals as choose_literals,
    compile_prompt as compile_prompt,
)
from .prompter import Prompter as Prompter, Rendering as Rendering, render_item as render_item
