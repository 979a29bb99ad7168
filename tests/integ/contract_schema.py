"""A small validator of JSON Schema (2020-12): the keywords that docs/openapi.yaml uses, and no other. Only the standard library."""

import base64
import binascii
import re

DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TYPES = {
    "null": lambda v: v is None,
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "string": lambda v: isinstance(v, str),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
NOTES = {"description", "default", "contentMediaType"}  # they bind nobody


class Invalid(Exception):
    """A value is not what its schema says. The text begins with the place in the value."""


def is_base64(text):
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True


def same(a, b):
    """Equal, and of one type: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


# Keywords that ask one thing of a value of one type: (type, what holds, what is said if it does not).
SIMPLE = {
    "minimum": ("number", lambda v, k: v >= k, "is less than"),
    "maximum": ("number", lambda v, k: v <= k, "is more than"),
    "exclusiveMinimum": ("number", lambda v, k: v > k, "is not more than"),
    "minLength": ("string", lambda v, k: len(v) >= k, "is shorter than"),
    "maxLength": ("string", lambda v, k: len(v) <= k, "is longer than"),
    "pattern": ("string", lambda v, k: re.search(k, v) is not None, "is not like"),
    "format": ("string", lambda v, k: k != "date-time" or DATE_TIME.fullmatch(v), "is no"),
    "contentEncoding": ("string", lambda v, k: k != "base64" or is_base64(v), "is no"),
    "minItems": ("array", lambda v, k: len(v) >= k, "has fewer than"),
    "maxItems": ("array", lambda v, k: len(v) <= k, "has more than"),
    "maxProperties": ("object", lambda v, k: len(v) <= k, "has more than"),
}


class Validator:
    """Checks values against the schemas of one document."""

    def __init__(self, document):
        self.document = document

    def resolve(self, thing):
        """What a reference stands for; anything else is itself."""
        while isinstance(thing, dict) and "$ref" in thing:
            at = self.document
            for part in thing["$ref"].removeprefix("#/").split("/"):
                at = at[part.replace("~1", "/").replace("~0", "~")]
            thing = at
        return thing

    def check(self, schema, value, where="$"):
        """Raises Invalid. Returns the members of an object that the schema has a word for."""
        known = set()
        if "$ref" in schema:
            known |= self.check(self.resolve(schema), value, where)
        for keyword, k in schema.items():
            if keyword in SIMPLE:
                kind, holds, text = SIMPLE[keyword]
                if TYPES[kind](value) and not holds(value, k):
                    raise Invalid(f"{where}: {value!r:.200} {text} {k}")
            elif keyword not in NOTES and not keyword.startswith(("x-", "$")):
                known |= getattr(self, "_" + keyword)(schema, k, value, where) or set()
        if schema.get("unevaluatedProperties") is False and isinstance(value, dict) and set(value) - known:
            raise Invalid(f"{where}: members that are not documented: {sorted(set(value) - known)}")
        return known

    def _type(self, _schema, k, value, where):
        if not any(TYPES[t](value) for t in ([k] if isinstance(k, str) else k)):
            raise Invalid(f"{where}: {value!r:.200} is no {k}")

    def _enum(self, _schema, k, value, where):
        if not any(same(value, e) for e in k):
            raise Invalid(f"{where}: {value!r:.200} is none of {k}")

    def _const(self, _schema, k, value, where):
        if not same(value, k):
            raise Invalid(f"{where}: {value!r:.200} is not {k!r}")

    def _required(self, _schema, k, value, where):
        missing = [name for name in k if isinstance(value, dict) and name not in value]
        if missing:
            raise Invalid(f"{where}: without {missing}")

    def _properties(self, _schema, k, value, where):
        if not isinstance(value, dict):
            return set()
        for name in set(k) & set(value):
            self.check(k[name], value[name], f"{where}.{name}")
        return set(k) & set(value)

    def _propertyNames(self, _schema, k, value, where):
        for name in value if isinstance(value, dict) else ():
            self.check(k, name, f"{where} (a name)")

    def _additionalProperties(self, schema, k, value, where):
        others = set(value) - set(schema.get("properties", ())) if isinstance(value, dict) else set()
        if others and k is False:
            raise Invalid(f"{where}: members that are not documented: {sorted(others)}")
        for name in others:
            self.check(k, value[name], f"{where}.{name}")
        return others

    def _unevaluatedProperties(self, _schema, _k, _value, _where):
        """Comes after all others: check() does it."""

    def _items(self, _schema, k, value, where):
        for i, item in enumerate(value if isinstance(value, list) else ()):
            self.check(k, item, f"{where}[{i}]")

    def _allOf(self, _schema, k, value, where):
        known = set()
        for each in k:
            known |= self.check(each, value, where)
        return known

    def _oneOf(self, _schema, k, value, where):
        known, fits, why = set(), 0, []
        for each in k:
            try:
                known = self.check(each, value, where)
                fits += 1
            except Invalid as e:
                why.append(str(e))
        if fits != 1:
            raise Invalid(f"{where}: {value!r:.200} is {fits} of {len(k)} things: {'; '.join(why)}")
        return known


KEYWORDS = set(SIMPLE) | NOTES | {"$ref"} | {name[1:] for name in vars(Validator) if re.fullmatch(r"_[a-z][a-zA-Z]+", name)}
