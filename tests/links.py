"""Links of Markdown inside of the repository, and of HTML inside of its folder: files and headings."""
import html.parser, re, subprocess, urllib.parse

LINK = re.compile(r"!?\[(?:[^\[\]`]|`[^`]*`)*\]\(([^()\s]+)\)")
OUTSIDE = re.compile(r"[a-z]+:")


def markdown_lines(text):
    """Numbered lines that are no code; code in a line is left out of what links are looked for in."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = mark[1] if fence is None else None
        elif fence is None:
            yield number, line


def slugs(text):
    """The anchors of the headings, as GitHub and pandoc's gfm make them."""
    found, seen = set(), {}
    for _, line in markdown_lines(text):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        count = seen[slug] = seen.get(slug, -1) + 1
        found.add(slug if not count else f"{slug}-{count}")
    return found


def check_markdown(root, names=None):
    root, bad = root.resolve(), []
    if names is None:
        names = subprocess.run(["git", "ls-files", "*.md", ":!tests"], cwd=root, capture_output=True, text=True).stdout.split()
        names = names or sorted(str(path.relative_to(root)) for folder in (".", "docs", "docs/names", "catalog") for path in (root / folder).glob("*.md"))
    for name in names:
        file = root / name
        for number, line in markdown_lines(file.read_text()):
            in_code = [match.span() for match in re.finditer(r"`[^`]*`", line)]
            for match in LINK.finditer(line):
                target = match[1]
                if OUTSIDE.match(target) or any(start <= match.start() < end for start, end in in_code):
                    continue
                path, _, anchor = urllib.parse.unquote(target).partition("#")
                other = (file.parent / path).resolve() if path else file
                if not other.is_relative_to(root):
                    bad.append(f"{name}:{number}: {target}: outside of the repository")
                elif not other.exists():
                    bad.append(f"{name}:{number}: {target}: no such file")
                elif anchor and other.suffix == ".md" and anchor not in slugs(other.read_text()):
                    bad.append(f"{name}:{number}: {target}: no such heading")
    return bad


class _Page(html.parser.HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.ids, self.links, self.title = set(), [], ""
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.add(attributes.get("id"))
        self.links += [attributes[key] for key in ("href", "src") if key in attributes]

    def handle_data(self, data):
        if self.lasttag == "title":
            self.title = self.title or data.strip()


def check_html(root):
    root, bad = root.resolve(), []
    pages = {file: _Page(file) for file in sorted(root.rglob("*.html"))}
    for file, page in pages.items():
        name = file.relative_to(root)
        if not page.title:
            bad.append(f"{name}: no title")
        for target in page.links:
            if OUTSIDE.match(target):
                continue
            path, _, anchor = urllib.parse.unquote(target).partition("#")
            other = (file.parent / path).resolve() if path else file
            if not other.is_relative_to(root) or not other.is_file():
                bad.append(f"{name}: {target}: no such file")
            elif anchor and anchor not in pages[other].ids:
                bad.append(f"{name}: {target}: no such heading")
    return bad
