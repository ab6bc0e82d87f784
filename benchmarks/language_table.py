"""Makes harness/languages/languages.tsv: the languages that language_table.txt adds to the published rows.

Rows that name XTREME-R's columns keep them; all others are made from what three sources say:

* LinguaMeta (Ritchie et al., 2024; github.com/google-research/url-nlp, CC BY-SA 4.0): names, ISO 639 codes, scripts.
* Glottolog 5.1 (Hammarström et al., 2024; github.com/glottolog/glottolog-cldf, CC BY 4.0): Glottocodes and families,
  which are renamed as XTREME-R's Table 7 names them (`FAMILIES`); branches within Indo-European.
* The classes 0 to 5 of Joshi et al. (2020), "The State and Fate of Linguistic Diversity and Inclusion in the NLP
  World", by name, from the copy in github.com/MaLA-LM/LangResourceAtlas (Joshi-et-al). The codes of that copy were
  guessed by language models and are not read. Names are missing in its classes 1 and 0: no class is not class 0.

Run: python -m benchmarks.language_table --linguameta URL-NLP --glottolog GLOTTOLOG-CLDF --classes ATLAS
(three clones; git directories without a work tree do too).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parent / "harness" / "languages" / "languages.tsv"
LISTED = HERE / "language_table.txt"
Row = dict[str, str]

FAMILIES = {
    "Atlantic-Congo": "Niger-Congo",
    "Mande": "Niger-Congo",
    "Nilotic": "Nilo-Saharan",
    "Saharan": "Nilo-Saharan",
    "Central Sudanic": "Nilo-Saharan",
    "Songhay": "Nilo-Saharan",
    "Austroasiatic": "Austro-Asiatic",
    "Tai-Kadai": "Kra-Dai",
    "Mongolic-Khitan": "Mongolic",
    "Otomanguean": "Oto-Manguean",
    "Artificial Language": "Constructed",
}
"""Names of top-level families in Glottolog and as XTREME-R and the African benchmarks group them."""
BRANCHES = {
    "germ1287": "Germanic",
    "roma1334": "Romance",
    "ital1284": "Italic",
    "slav1255": "Slavic",
    "indo1321": "Indo-Aryan",
    "iran1269": "Iranian",
    "gree1276": "Greek",
    "east2280": "Baltic",
    "celt1248": "Celtic",
    "alba1267": "Albanian",
    "arme1241": "Armenian",
    "anat1257": "Anatolian",
}
"""Nodes of Glottolog within Indo-European."""
UNSPACED = {"Thai", "Laoo", "Khmr", "Mymr", "Tibt", "Hans", "Hant", "Jpan"}
SUBTAGS = {
    "Arab": "Arabic script",
    "Cyrl": "Cyrillic script",
    "Deva": "Devanagari script",
    "Hant": "Traditional script",
    "Latn": "Latin script",
    "Mtei": "Meitei script",
    "Tfng": "Tifinagh script",
    "BR": "Brazil",
    "CA": "Canada",
    "GB": "United Kingdom",
    "HK": "Hong Kong",
    "IN": "India",
    "MX": "Mexico",
    "MZ": "Mozambique",
}


@dataclass(frozen=True)
class Sources:
    """What the three sources say."""

    linguameta: Mapping[str, Row]
    """Rows by BCP-47 code."""
    glottolog: Mapping[str, Row]
    """Languages by ISO 639-3 code, and every languoid by Glottocode."""
    branches: Mapping[str, str]
    """Branches of Indo-European by Glottocode."""
    classes: Mapping[str, str]
    """Classes of Joshi et al. by name in lower case."""

    @classmethod
    def read(cls, linguameta: Path, glottolog: Path, classes: Path | None) -> Sources:
        """Return the sources of three clones; without `classes` no language has a class."""
        rows = csv.DictReader(io.StringIO(_shown(linguameta, "linguameta/linguameta.tsv")), delimiter="\t")
        languoids = list(csv.DictReader(io.StringIO(_shown(glottolog, "cldf/languages.csv"))))
        by_code = {row["ID"]: row for row in languoids}
        by_code |= {row["ISO639P3code"]: row for row in languoids if row["ISO639P3code"]}
        trees = _shown(glottolog, "cldf/classification.nex")
        atlas = (
            {} if classes is None else json.loads(_shown(classes, "Joshi-et-al/Joshi-et-al-6-classes.json"))
        )
        return cls(
            linguameta={row["bcp_47_code"]: row for row in rows},
            glottolog=by_code,
            branches=dict(_branches(trees)),
            classes={entry["lang_name"]: number for number, entries in atlas.items() for entry in entries},
        )


def _shown(clone: Path, path: str) -> str:
    return subprocess.run(
        ["git", "-C", clone, "show", f"HEAD:{path}"], check=True, capture_output=True, encoding="utf-8"
    ).stdout


def _branches(trees: str) -> Iterator[tuple[str, str]]:
    """Yield every languoid of Indo-European below a branch, with the name of the branch."""
    tree = re.search(r"tree indo1319 = \[&R\] (.*);", trees)
    if tree is None:
        raise ValueError("Glottolog's trees have no Indo-European (indo1319)")
    # Read from the right, so that a node is met before what it holds.
    stack: list[str] = []
    last = ""
    for token in reversed(re.findall(r"[a-z]{4}[0-9]{4}|[()]", tree[1])):
        if token == ")":
            stack.append(last)
        elif token == "(":
            stack.pop()
        else:
            last = token
            branch = next((BRANCHES[node] for node in (token, *reversed(stack)) if node in BRANCHES), None)
            if branch is not None:
                yield token, branch


def listed() -> Iterator[tuple[str, Row]]:
    """Yield the codes of language_table.txt with what it gives."""
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            code, *given = line.split(" ")
            yield code, {key: value.replace("_", " ") for key, value in (part.split("=") for part in given)}


def _language(code: str, given: Row, base: Row | None, sources: Sources) -> Row:
    """Return the row of a listed language; `base` is that of the same language without the subtag."""
    flores = given.get("flores", "").replace(" ", "_")
    known = sources.linguameta.get(code, {})
    iso = given.get("iso") or (base or {}).get("iso639_3") or known.get("iso_639_3_code", "")
    languoid = sources.glottolog.get(given.get("glottocode", iso), {})
    glottocode = languoid.get("ID") or known.get("glottocode") or (base or {}).get("glottocode", "")
    subtag = code.rpartition("-")[2] if base else ""
    script = given.get("script") or flores[-4:] or (subtag if len(subtag) == 4 else "")
    script = script or (base or {}).get("script") or known.get("writing_systems", "")
    if not re.fullmatch("[A-Z][a-z]{3}", script):
        raise ValueError(f"{code}: the script is one of {script!r}; give script=")
    name = (
        given.get("name")
        or known.get("english_name")
        or (f"{base['name']} ({SUBTAGS[subtag]})" if base else "")
    )
    if not name or not iso:
        raise ValueError(f"{code}: LinguaMeta has no name or no ISO 639-3 code; give name= and iso=")
    family = given.get("family") or (base or {}).get("family") or family_of(glottocode, sources)
    return {
        "code": code,
        "name": name,
        "script": script,
        "family": family,
        "branch": branch_of(glottocode, sources) if family == "Indo-European" else "",
        "iso639_3": iso,
        "flores": flores,
        "segmentation": "character" if script in UNSPACED else "space",
        "iso639_2": "" if base else _iso639_2(code, known),
        "retired": " ".join(re.findall(r"\b[a-z]{2}\b", known.get("deprecated_bcp_47_code") or "")),
        "glottocode": glottocode,
        "resource_class": (base or {}).get("resource_class", "")
        or class_of(given, name, glottocode, sources),
    }


def family_of(glottocode: str, sources: Sources) -> str:
    """Return the top-level family as `FAMILIES` names it."""
    languoid = sources.glottolog[glottocode]
    top = sources.glottolog[languoid["Family_ID"] or languoid["ID"]]["Name"]
    return FAMILIES.get(top, top)


def branch_of(glottocode: str, sources: Sources) -> str:
    """Return the branch within Indo-European, empty in other families."""
    language = sources.glottolog[glottocode]["Language_ID"] or glottocode
    return sources.branches.get(language, "")


def _iso639_2(code: str, known: Row) -> str:
    """Return the ISO 639-2 codes of a language with a code of two letters, the bibliographic one last."""
    if len(code) != 2:
        return ""
    return " ".join(filter(None, [known.get("iso_639_3_code"), known.get("iso_639_2b_code")]))


def class_of(given: Row, name: str, glottocode: str, sources: Sources) -> str:
    """Return the class of Joshi et al., empty where their list does not have the name."""
    names = [
        given.get("class", ""),
        name.lower(),
        sources.glottolog.get(glottocode, {}).get("Name", "").lower(),
    ]
    return next((sources.classes[key] for key in names if key in sources.classes), "")


def main(arguments: list[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    for name in ("linguameta", "glottolog", "classes"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    given = parser.parse_args(arguments)
    sources = Sources.read(given.linguameta, given.glottolog, given.classes)
    with TABLE.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        columns = [*(reader.fieldnames or ())]
        added = dict(listed())
        rows = {row["code"]: row for row in reader if row["code"] not in added}
    columns += [name for name in ("glottocode", "resource_class") if name not in columns]
    for row in rows.values():
        row["glottocode"] = sources.glottolog[row["iso639_3"]]["ID"]
        row["resource_class"] = class_of(
            {"class": CLASS_NAMES.get(row["code"], "")}, row["name"], "", sources
        )
    for code, details in sorted(added.items(), key=lambda item: item[0].count("-")):
        rows[code] = _language(code, details, rows.get(code.split("-")[0]) if "-" in code else None, sources)
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(
            stream, columns, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n", restval=""
        )
        writer.writeheader()
        writer.writerows(rows[code] for code in sorted(rows))
    print(f"{len(rows)} languages; {sum(bool(row['resource_class']) for row in rows.values())} with a class.")


CLASS_NAMES = {"ht": "haitian", "pa": "eastern punjabi", "qu": "quechua", "zh": "mandarin"}
"""Names of published rows in the list of Joshi et al., where they differ."""

if __name__ == "__main__":
    main()
