"""Makes harness/languages/living.tsv: the living languages of ISO 639-3 that languages.tsv does not have.

The list of languages is that of ISO 639-3 as the package iso639-lang ships it (MIT; the code tables of SIL
International, iso639-3.sil.org). Names, scripts and Glottocodes are LinguaMeta's, families Glottolog's, as in
`benchmarks.language_table`. Of several scripts the likely one of CLDR is taken (langcodes, MIT), or none: a script or
family that is not known stays empty.

Run: python -m benchmarks.living_languages --linguameta URL-NLP --glottolog GLOTTOLOG-CLDF --classes ATLAS
(three clones, and pip install iso639-lang langcodes).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

from benchmarks.language_table import TABLE, UNSPACED, Row, Sources, branch_of, class_of, family_of

LIVING = TABLE.with_name("living.tsv")
COLUMNS = (
    "code", "name", "script", "family", "branch", "iso639_3", "segmentation", "iso639_2", "glottocode",
    "resource_class", "macrolanguage",
)  # fmt: skip


def _row(language: Any, sources: Sources) -> Row:
    """Return the row of a language of the package iso639-lang."""
    from langcodes import Language  # type: ignore[import-not-found]

    known = sources.linguameta.get(language.pt1 or language.pt3, {})
    scripts = [script for script in known.get("writing_systems", "").split(", ") if script]
    likely = str(Language.get(language.pt3).maximize().script or "")
    script = scripts[0] if len(scripts) == 1 else likely if likely in scripts else ""
    glottocode = sources.glottolog.get(language.pt3, {}).get("ID") or known.get("glottocode", "")
    family = family_of(glottocode, sources) if glottocode in sources.glottolog else ""
    name = known.get("english_name") or language.name
    macro = language.macro()
    return {
        "code": language.pt1 or language.pt3,
        "name": name,
        "script": script,
        "family": family,
        "branch": branch_of(glottocode, sources) if family == "Indo-European" else "",
        "iso639_3": language.pt3,
        "segmentation": "character" if script in UNSPACED else "space",
        "iso639_2": " ".join(dict.fromkeys(filter(None, [language.pt2t, language.pt2b])))
        if language.pt1
        else "",
        "glottocode": glottocode,
        "resource_class": class_of({}, name, glottocode, sources),
        "macrolanguage": "" if macro is None else macro.pt1 or macro.pt3,
    }


def main(arguments: list[str] | None = None) -> None:
    """Write the table."""
    from iso639 import iter_langs  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("linguameta", "glottolog", "classes"):
        parser.add_argument(f"--{name}", type=Path, required=name != "classes")
    given = parser.parse_args(arguments)
    sources = Sources.read(given.linguameta, given.glottolog, given.classes)
    with TABLE.open(encoding="utf-8", newline="") as stream:
        listed = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    codes = {code for row in listed for key in ("code", "iso639_3", "iso639_2") for code in row[key].split()}
    rows = [
        _row(language, sources)
        for language in iter_langs()
        if language.pt3 and language.type() == "Living" and not {language.pt1, language.pt3} & (codes - {""})
    ]
    with LIVING.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: row["code"]))
    print(
        f"{len(rows)} languages; {sum(bool(row['script'] and row['family']) for row in rows)} with script and family."
    )


if __name__ == "__main__":
    main()
