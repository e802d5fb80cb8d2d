"""catalog/removals.yaml as test scripts read it: the fields that they ask for, from the text of the file, so that they do not
depend on the loader that they test, nor on a YAML library."""
import pathlib, re
from dataclasses import dataclass, field

CATALOG = pathlib.Path(__file__).resolve().parents[1] / "catalog" / "removals.yaml"


@dataclass
class Route:
    kind: str
    module: str = ""
    name: str = ""
    since: str = ""
    until: str = ""
    python: bool = False
    arguments: list = field(default_factory=list)  # (old, new); new is "" for one without a counterpart
    line: int = 0

    def takes_old_calls(self):
        """Promised for sglang; elsewhere true as well when all arguments keep their names."""
        return self.python or (self.kind in ("jit", "library") and bool(self.arguments) and all(old == new for old, new in self.arguments))

    def is_in(self, release):
        return version(self.since) <= version(release) and (not self.until or version(release) < version(self.until))


@dataclass
class Row:
    id: str
    status: str
    places: list  # (module, name)
    signature: str
    op_name: str
    op_schema: str
    declaration: str
    scope: str
    mangled: str
    removals: list  # {key: value}
    routes: list
    elsewhere: list  # those of other platforms than CUDA

    def cxx_name(self):
        return re.search(r"(\w+)\(", self.declaration)[1]

    def gone(self, layer):
        """The first release for CUDA, else for any platform, without the layer; "" when none is."""
        left = [r for r in self.removals if r["layer"] == layer and "first_without" in r]
        return next((r["first_without"] for r in sorted(left, key=lambda r: r["platform"] != "cuda")), "")


def version(text):
    """A release number of PEP 440's subset as something that compares."""
    match = re.fullmatch(r"([\d.]+?)(?:(a|b|rc)(\d+))?(?:\.post(\d+))?", text)
    number, stage, count, post = match.groups()
    return [*map(int, number.split("."))] + [0] * (4 - number.count(".")), stage or "z", int(count or 0), int(post or -1)


def _value(block, key, indent):
    match = re.search(rf"^{' ' * indent}{key}: (.*)$", block, re.M)
    return match[1].strip('"') if match else ""


def _fields(text):
    """{key: value, key: "value"} of one line."""
    return {key: quoted or plain for key, quoted, plain in re.findall(r'(\w+): (?:"([^"]*)"|([^,}\s]*))', text)}


def _route(block, line):
    text = "        kind: " + block
    return Route(_value(text, "kind", 8), _value(text, "module", 8), _value(text, "name", 8), _value(text, "from", 8), _value(text, "until", 8),
                 _value(text, "python", 8) == "true", re.findall(r'\{from: (\w+), to: "?(\w*)"?\}', text), line)


def _row(block, line):
    head, _, rest = block.partition("\n    routes:\n")
    routes, at = {"routes": [], "elsewhere": []}, line + head.count("\n") + 1
    for key, text in zip(("routes", *re.findall(r"\n    (\w+):", rest)), re.split(r"(?=\n    \w)", rest)):
        for number, one in enumerate(text.split("      - kind: ")):
            if number and key in routes:
                routes[key].append(_route(one, at + 1))
            at += one.count("\n")
    cxx = head.partition("\n    cxx:\n")[2]
    return Row(head.split("\n")[0], _value(head, "status", 4), re.findall(r"\{module: ([\w.]+), name: (\w+)\}", head), _value(head, "python_signature", 4),
               _value(head, "op_name", 4), _value(head, "op_schema", 4), _value(cxx, "declaration", 6), _value(cxx, "scope", 6), _value(cxx, "mangled", 6),
               [_fields(text) for text in re.findall(r"- (\{layer: [^}]*\})", head)], **routes)


def rows(path=CATALOG):
    text = pathlib.Path(path).read_text().split("\nchanges:")[0]
    blocks, line, found = text.split("\n  - id: "), 1, []
    for i, block in enumerate(blocks):
        if i:
            found.append(_row(block, line))
        line += block.count("\n") + 1
    return found


def releases(key, path=CATALOG):
    """library.KEY, a list of releases."""
    text = pathlib.Path(path).read_text().split("\nsymbols:")[0]
    return re.findall(r"[^\s,\[\]]+", re.search(rf"^  {key}:\s*\[([^\]]*)\]", text, re.M)[1])
