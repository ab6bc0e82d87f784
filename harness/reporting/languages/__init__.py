"""Why a language is weak: contrasts, findings, properties that explain scores, and consistency."""
