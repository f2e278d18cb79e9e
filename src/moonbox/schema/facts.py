"""Facts in descriptions of fields that types do not say: allowed values, units, formats, ranges, null."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from moonbox.wording import one_line

MOST_VALUES = 20
_LONGEST_VALUES = 200
_LONGEST_REMARK = 80
_LONGEST_TEXT = 2000
_LARGEST = 2**53 - 1  # the bounds of what zod calls an integer say nothing
SENTENCE = r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)[.!?](?=\s)|[。！？]"
"""The end of a sentence."""


def allowed_values(description: str) -> list[str]:
    """The values that a description lists as the only ones; none where it lists none, or too many to show."""
    text = one_line(description[:_LONGEST_TEXT])
    found = re.search(_LISTED, text, _PLAIN_CASE)
    if found is not None:
        values = _items(text[found.end() :])
    else:
        found = re.search(_SLASHED, text)
        values = found[1].split("/") if found is not None else []
    unique = list(dict.fromkeys(values))
    return unique if 2 <= len(unique) <= MOST_VALUES and sum(map(len, unique)) <= _LONGEST_VALUES else []


def remark(name: str, description: str, schema: Mapping[str, object]) -> str:
    """What a field's description and schema say beyond its name and type, in a few words: facts first if it is cut."""
    text = one_line(description[:_LONGEST_TEXT])
    listed = re.search(_LISTED, text, _PLAIN_CASE) if allowed_values(description) else None
    text = text[: listed.start()] if listed is not None else text
    said, facts = [], _range(schema, text)
    for sentence in sentences(text):
        found = [match[0] for pattern in _CLAUSES if (match := re.search(pattern, sentence, re.ASCII)) is not None]
        facts += found
        said += [sentence.rstrip(".。 ")] if telling(sentence) else found
    form = schema.get("format")
    if not said and isinstance(form, str) and form in _FORMATS:
        said = [form]
    short = _joined([*said, *_range(schema, text)])
    if len(short) > _LONGEST_REMARK:
        short = _joined([*facts, *said])
    if len(short) > _LONGEST_REMARK:
        short = short[: _LONGEST_REMARK - 1].rpartition(" ")[0].rstrip(" ;,") + "…"
    return "" if short.lower() == name.lower().replace("_", " ") else short


def _joined(said: list[str]) -> str:
    return "; ".join(dict.fromkeys(said)).replace("(", "[").replace(")", "]")


def _range(schema: Mapping[str, object], text: str) -> list[str]:
    """The bounds of a number that its description does not have; of 0 and 1 alone nothing is said."""
    least, most = (_whole(schema.get(keyword)) for keyword in ("minimum", "maximum"))
    if any(bound is not None and str(bound) in text for bound in (least, most)):
        return []
    if most is not None:
        return [f"at most {most}" if least is None else f"{least} to {most}"]
    return [] if least in (None, 0, 1) else [f"at least {least}"]


def _whole(bound: object) -> int | None:
    return int(bound) if type(bound) in (int, float) and -_LARGEST < bound < _LARGEST and bound % 1 == 0 else None  # type: ignore[operator, call-overload]  # a number


def telling(sentence: str) -> bool:
    """Whether a sentence says what one must know: a condition, null, how a text begins."""
    return re.search(_TELLING, sentence, _PLAIN_CASE) is not None and not sentence.startswith("Default")


def sentences(text: str) -> list[str]:
    """The sentences of one line of text."""
    ends = [found.end() for found in re.finditer(SENTENCE, text)]
    parts = [text[start:end].strip() for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]
    return [part for part in parts if part]


def _items(text: str) -> list[str]:
    """The items at the beginning of a text: a JSON list, quoted words, or words between commas."""
    listed = re.match(r"\s*(\[[^\[\]]*\])", text)
    if listed is not None:
        try:
            values = json.loads(listed[1].replace("'", '"'))
        except ValueError:
            return []
        return values if all(isinstance(value, str) for value in values) else []
    quoted = re.match(_QUOTED_LIST, text, re.ASCII)
    if quoted is not None:
        return [item[1:-1] for item in re.findall(_QUOTED, quoted[0], re.ASCII)]
    plain = re.match(_PLAIN_LIST, text, re.ASCII)
    return re.split(r", (?:(?:or|and) )?", plain[1]) if plain is not None else []


_PLAIN_CASE = re.ASCII | re.IGNORECASE
_QUOTED = r"(?:\"[\w -]+\"|'[\w -]+'|`[\w -]+`)"
_QUOTED_LIST = rf"\s*{_QUOTED}(?:(?:,| or|, or| and|, and|\s?/|\s?\|)\s*{_QUOTED})+"
_WORDS = r"[\w-]+(?: [\w-]+){0,2}"
_PLAIN_LIST = rf"\s*((?:{_WORDS}, )+(?:(?:or|and) )?{_WORDS})\s*(?:[.;)\]]|$)"
_LISTED = (
    r"\[enum\]:?|(?:must be |is |are )?(?:either |one of)(?: the following)?:?(?=\s*[\"'`\[]|:)"
    r"|(?:allowed|possible|valid|accepted|supported) (?:values?|options?|choices)(?: are| include|)?:?"
    r"|(?:here are the )?(?:options|choices|values)(?: are)?:"
)
_SLASHED = r"\(([A-Za-z]{3,}(?:/[A-Za-z]{3,})+)\)"
_TELLING = (
    r"\bnull\b|\bnone\b|\bnever\b|\bempty\b|\bmust\b|\bonly\b|\bunless\b|\bexcept|\bcannot\b|\bprefix"
    r"|\b(?:start|begin|end)s? with\b|\bISO\b|\bIATA\b|\bseparated\b|\bby (?:its|their)\b"
    r"|\"[^\"]+\""
)
_UNITS = (
    r"(?:milli|micro|kilo)?(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|met(?:er|re)s?|grams?|bytes)"
    r"|(?:miles?|km(?:/h)?|mph|feet|gallons?|lit(?:er|re)s?|degrees?(?: [A-Z]\w+)?|[Cc]elsius|[Ff]ahrenheit|[Nn]ewtons"
    r"|psi|kPa|[KMG]i?B|kg|pounds|cents|dollars|euros|USD|EUR|percent(?:age)?|UTC)"
)
_CLAUSES = (
    r"\b\d+[- ](?:letter|digit|character)s?(?: \w+)?",
    r"[YMDHhms]{2,4}(?:[-/:. T][YMDHhms]{2,4})+(?: AM/PM)?",
    rf"(?<=\b[Ii]n )(?:{_UNITS})\b",
    r"\b[Bb]etween -?[\d.]+(?: \([^)]*\))? and -?[\d.]+\b",
    r"\bfrom -?[\d.]+ to -?[\d.]+\b",
    r"\b(?:[Aa]t (?:most|least)|[Uu]p to) [\d.]+\b",
    r"\be\.g\.,? [^()]{1,40}(?=\))",
)
_FORMATS = frozenset({"date", "date-time", "time", "duration", "byte", "base64", "uri", "email"})
