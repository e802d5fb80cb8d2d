#!/usr/bin/env python3
"""The documentation: docs/names is what the catalog gives, all links inside of the repository lead somewhere, and so do those of
the HTML that `make docs` makes of it."""
import os, pathlib, re, subprocess, sys, tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import links
from suite import Skip, main

BUILD = pathlib.Path(os.environ["BUILD_DIR"])
TOOL = BUILD / "bin" / "sgl-catalog"
CATALOG = ROOT / "catalog" / "removals.yaml"
NAMES = ROOT / "docs" / "names"
ROWS = CATALOG.read_text().split("\nchanges:")[0].split("\n  - id: ")[1:]


def docs(catalog, folder):
    subprocess.run([TOOL, "docs", catalog, folder], check=True, timeout=60)
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def test_names_are_fresh():
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        want = docs(CATALOG, one)
        assert want == docs(CATALOG, two), "not the same bytes twice"
    have = {path.name: path.read_bytes() for path in NAMES.iterdir()}
    stale = sorted(name for name in want.keys() | have.keys() if want.get(name) != have.get(name))
    assert not stale, f"docs/names is not what catalog/removals.yaml says: {', '.join(stale[:9])}; run `make names`"


def test_every_row_has_its_page():
    answers, index = (NAMES / "answers.md").read_text(), (NAMES / "README.md").read_text()
    assert len(ROWS) > 90
    for row in ROWS:
        name = row.split("\n")[0]
        page = (NAMES / f"{name}.md").read_text()
        for text in (f"[`{name}`]({name}.md)",):
            assert answers.count(text) == 1 and text in index, f"{name} is not in the tables"
        for title in ("What it was", "When and why it went", "What to do now", "Sources"):
            assert f"\n## {title}\n" in page, f"{name}: {title}"
        assert ("\n## Traps\n" in page) == ("\n    traps:" in row), name
        for module, function in re.findall(r"\n        module: (\S+)\n        name: (\S+)", row):
            assert f"`{module}.{function}`" in page, f"{name}: {module}"
        for release in re.findall(r"first_without: ([^,}]+)", row):
            assert f"gone from {release}." in page, f"{name}: {release}"
            section = re.search(rf"\n### {re.escape(release)}\n(.*?)(?=\n##)", index, re.S)[1]
            assert f"({name}.md)" in section, f"{name} is not in the index under {release}"


def test_an_answer_for_every_row():
    for line in (NAMES / "answers.md").read_text().splitlines():
        if line.startswith("| [`"):
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            assert len(cells) == 7 and all(cells[:6]), line
            assert cells[4] != "tombstone" or cells[6], f"no reason for the tombstone: {line}"


def test_every_change_is_on_the_page_of_its_release():
    changes = CATALOG.read_text().split("\nchanges:")[1].split("\n  - id: ")[1:]
    index, count = (NAMES / "changes.md").read_text(), {}
    assert len(changes) > 200
    for change in changes:
        name, release, reason = (re.search(rf'\n    {key}: "?([^"\n]*)', change)[1] for key in ("name", "release", "reason"))
        page = (NAMES / f"changes-{release}.md").read_text()
        count[release, name] = count.get((release, name), 0) + 1
        assert page.count(f"\n## `{name}`, ") >= count[release, name], f"{name} is not on the page of {release}"
        assert f"[{release}](changes-{release}.md)" in index, release
    pages = {path.name for path in NAMES.glob("changes-*.md")}
    assert pages == {f"changes-{release}.md" for release, _ in count}, pages


def test_html_and_man_pages():
    """What `make docs` has made: a page of each, newer than what it is made of."""
    made = BUILD / "docs"
    if not made.is_dir():
        raise Skip("make docs has not been run")
    sources = [ROOT / "README.md", ROOT / "catalog" / "schema.md", *(ROOT / "docs").glob("*.md"), *NAMES.glob("*.md"), *(ROOT / "docs").glob("*.1")]
    html = {source: made / "html" / source.relative_to(ROOT).with_suffix(".html" if source.suffix == ".md" else ".1.html") for source in sources}
    assert set(html.values()) == set((made / "html").rglob("*.html"))
    old = [str(page) for source, page in html.items() if page.stat().st_mtime < source.stat().st_mtime]
    assert not old, f"run make docs: older than what they are made of: {', '.join(old[:5])}"
    bad = links.check_html(made / "html")
    assert not bad, "\n".join(bad)
    manuals = sorted((made / "man").rglob("*.[17]"))
    assert len(manuals) == len(sources), (len(manuals), len(sources))
    for page in manuals:
        text = page.read_text()
        assert re.search(r"^\.TH ", text, re.M) and re.search(r"^\.SH NAME\n(\.PP\n)?\S+ \\?- \S", text, re.M), page


def test_links_lead_somewhere():
    bad = links.check_markdown(ROOT)
    assert not bad, "\n".join(bad)


def test_broken_links_are_found():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "a.md").write_text("# One `two_x` & three\n\n[a](#one-two_x--three) [b](#no) [c](b.md) [d](none.md) [e](b.md#here-1) [f](b.md#there)\n"
                                     "```\n[g](none)\n```\n`[h](none)` [i](https://example.org/x) [j](../x)\n")
        (folder / "b.md").write_text("## Here\n\n## Here\n")
        have = links.check_markdown(folder, ["a.md", "b.md"])
        assert have == ["a.md:3: #no: no such heading", "a.md:3: none.md: no such file", "a.md:3: b.md#there: no such heading", "a.md:7: ../x: outside of the repository"], have
        (folder / "a.html").write_text('<title>A</title><h1 id="one">One</h1><a href="#one">a</a><a href="#no">b</a><a href="b.html">c</a><img src="none.svg">')
        (folder / "b.html").write_text('<a href="a.html#one">a</a><a href="a.html#two">b</a><a href="https://example.org">c</a>')
        have = links.check_html(folder)
        assert have == ["a.html: #no: no such heading", "a.html: none.svg: no such file", "b.html: no title", "b.html: a.html#two: no such heading"], have


main(globals())
