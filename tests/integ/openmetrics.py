"""A parser of the OpenMetrics text format (specification 1.0) that takes nothing else."""

import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? (\S+)(?: (\S+))?$")
SUFFIXES = {
    "counter": ("_total", "_created"),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum", "_created"),
    "info": ("_info",),
    "unknown": ("",),
}


class Family:
    def __init__(self, name):
        self.name = name
        self.type = None
        self.help = None
        self.unit = None
        self.samples = []  # (suffix, labels as a dictionary, value)

    def value(self, suffix="", **labels):
        found = [v for s, l, v in self.samples if s == suffix and l == labels]
        assert len(found) == 1, (self.name, suffix, labels, found)
        return found[0]


def number(text):
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?Inf|NaN", text):
        raise AssertionError(f"no number: {text!r}")
    return float(text)


def describe(families, current, line):
    """A line of metadata; returns the family that it is of."""
    m = re.fullmatch(rf"# (TYPE|HELP|UNIT) ({NAME}) (.*)", line)
    assert m, f"no metadata: {line!r}"
    kind, name, text = m.groups()
    if current is None or current.name != name:
        assert name not in families, f"the family {name} stands in two places"
        current = families[name] = Family(name)
    assert not current.samples, f"metadata after samples: {line!r}"
    assert getattr(current, kind.lower()) is None, f"given twice: {line!r}"
    if kind == "TYPE":
        assert text in SUFFIXES, f"unknown type: {line!r}"
    if kind == "UNIT":
        assert name.endswith("_" + text), f"the name must end with the unit: {line!r}"
    if kind == "HELP":
        assert not re.search(r"\\(?![\\n\"])", text), f"bad escape: {line!r}"
    setattr(current, kind.lower(), text)
    return current


def sample(current, line):
    m = SAMPLE.match(line)
    assert m and m.group(0) == line, f"no sample: {line!r}"
    assert current and current.type, f"a sample of no family: {line!r}"
    name, labels = m.group(1), dict(re.findall(LABEL, m.group(2) or "")) if m.group(2) else {}
    assert len(labels) == len(re.findall(LABEL, m.group(2) or "")), f"a label is given twice: {line!r}"
    assert name.startswith(current.name), f"a sample of another family: {line!r}"
    suffix = name[len(current.name):]
    assert suffix in SUFFIXES[current.type], f"no sample of a {current.type}: {line!r}"
    assert (suffix == "_bucket") == ("le" in labels), line
    current.samples.append((suffix, labels, number(m.groups()[-2])))


def check_histogram(family):
    points = {}
    order = []
    for suffix, labels, value in family.samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        if not order or order[-1] != key:
            assert key not in order, f"the samples of one point stand apart: {family.name} {key}"
            order.append(key)
        points.setdefault(key, []).append((suffix, labels.get("le"), value))
    for key, samples in points.items():
        buckets = [(number(le), v) for s, le, v in samples if s == "_bucket"]
        assert [le for le, _ in buckets] == sorted({le for le, _ in buckets}), (family.name, "bounds")
        assert [v for _, v in buckets] == sorted(v for _, v in buckets), (family.name, "buckets are cumulative")
        assert buckets[-1][0] == float("inf"), (family.name, "+Inf is missing")
        count = [v for s, _, v in samples if s == "_count"]
        total = [v for s, _, v in samples if s == "_sum"]
        assert count == [buckets[-1][1]] and len(total) == 1 and total[0] >= 0, (family.name, key, count, total)


def parse(text):
    """All families by name; AssertionError when it is not as the specification says."""
    assert text.endswith("# EOF\n"), "no # EOF at the end"
    families, current = {}, None
    for line in text[:-len("# EOF\n")].split("\n")[:-1]:
        assert line and line == line.strip() and "\r" not in line, f"blanks: {line!r}"
        if line.startswith("#"):
            current = describe(families, current, line)
        else:
            sample(current, line)
    names = [f.name + s for f in families.values() for s in SUFFIXES[f.type]]
    assert len(names) == len(set(names)), "two families have samples of one name"
    for f in families.values():
        assert f.samples and f.help, f"{f.name} has no samples, or no help"
        series = [(s, tuple(sorted(l.items()))) for s, l, _ in f.samples]
        assert len(series) == len(set(series)), f"{f.name}: a series stands twice"
        if f.type in ("counter", "histogram"):
            assert all(v >= 0 for _, _, v in f.samples), f.name
        if f.type == "info":
            assert all(v == 1 for _, _, v in f.samples), f.name
        if f.type == "histogram":
            check_histogram(f)
    return families
