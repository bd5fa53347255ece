#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py [FOLDER]: the pages of this repository as a site in FOLDER (default: build/site).

Pages are translated by pandoc, which reads them as they are read where the repository is shown. Every page has a
place in ORDER, the order in which a reader needs them. Files that pages link to are copied. The site asks for nothing
outside its folder and works from a file:// address. What is wrong (a page without a place, a link or an anchor that
leads nowhere, an address that is none) is said, a line each; exit code 1 then, and the old site stays.
"""
import glob
import html
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
READER = "commonmark+pipe_tables+strikeout+autolink_bare_uris+gfm_auto_identifiers+task_lists+raw_html"
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "results/README.md", "results/gate/**/*.md",
         "results/reference/**/*.md")
SHOWN = (".svg", ".csv", ".txt")  # browsers show these; others get .txt
REFERENCE = "results/reference/"
ORDER = (
    ("Start", (("README.md", "What it is"), ("docs/install.md", "Install"), ("docs/tasks.md", "Ten tasks"),
               ("docs/measuring.md", "Measuring"), ("results/README.md", "Columns of tables"))),
    ("Variants", (("docs/variants.md", "Variants and choices"), ("docs/systems.md", "Published systems"))),
    ("Quality", (("docs/scoring.md", "Scoring"), ("docs/training.md", "Training and studies"),
                 ("docs/texts.md", "Generated texts, tasks"), ("docs/checkpoints.md", "Published models"))),
    ("Results", tuple((REFERENCE + page + ".md", title) for page, title in (
        ("README", "Overview"), ("leaderboard", "Leaderboard"), ("claims", "Claims of papers"),
        ("abilities", "Abilities"), ("amd-epyc-2vcpu/README", "Lengths and backends"),
        ("crossover", "State against cache"), ("libraries", "Libraries"), ("dtypes", "Narrow weights"),
        ("recurrences", "Recurrences"), ("llama", "Beside llama.cpp"), ("models", "Larger models"), ("long/README", "Longer trainings"), ("texts", "Scored texts"),
        ("recipes", "Optimisers"), ("study/README", "Base variants in detail"), ("rl", "Memory tasks"),
        ("exit", "Early exit"))) + (("results/gate/README.md", "Tests of the gate"),)),
    ("Elsewhere", (("docs/library.md", "C, numpy, PyTorch"), ("docs/pytorch.md", "From PyTorch"), ("docs/kernels.md", "A kernel of yours"), ("docs/cluster.md", "Clusters"))),
    ("Inside", (("docs/architecture.md", "Architecture"), ("CONTRIBUTING.md", "Contributing"),
                ("docs/testing.md", "What is tested"), ("docs/crosschecks.md", "Cross-checks"),
                ("docs/SECURITY.md", "Security"), ("CHANGELOG.md", "Changes"))))
TITLES = {page: title for _, pages in ORDER for page, title in pages}
faults = []


def fault(where, what, then):
    faults.append(f"{where}: {what}  -> {then}")


def place(page):
    """Where the site has a page."""
    folder, name = os.path.split(page)
    return os.path.join(folder, "index.html" if name == "README.md" else name[:-3] + ".html")


def relative(path, page):
    return os.path.relpath(path, os.path.dirname(place(page)) or ".")


class Site:
    def __init__(self, folder):
        self.folder, self.copied = folder, set()

    def path(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)

    def copy(self, path):
        """Where the site has a file of the repository, or a folder's list of files."""
        if os.path.isdir(os.path.join(ROOT, path)):
            files = [f for f in sorted(os.listdir(os.path.join(ROOT, path)))
                     if os.path.isfile(os.path.join(ROOT, path, f))]
            rows = "".join(f'<li><a href="{os.path.basename(self.copy(os.path.join(path, f)))}">{f}</a></li>' for f in files)
            page = os.path.join(path, "README.md")
            self.write(place(page), framed(page, path, f"<h1>{path}</h1><ul>{rows}</ul>"))
            return place(page)
        name = path if path.endswith(SHOWN) else path + ".txt"
        if name not in self.copied:
            self.copied.add(name)
            shutil.copyfile(os.path.join(ROOT, path), self.path(name))
        return name

    def target(self, page, link):
        """A link of a page of the repository as one of the site."""
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            at = urllib.parse.urlsplit(link)
            if not (at.scheme in ("http", "https") and re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", at.netloc)):
                fault(page, f"{link} is no address", "use https://HOST/...")
            return link
        name, hash_, anchor = urllib.parse.unquote(link).partition("#")
        if not name:
            return link
        path = os.path.normpath(os.path.join(os.path.dirname(page), name))
        if path.startswith("..") or not os.path.exists(os.path.join(ROOT, path)):
            fault(page, f"links to {path}, which is not there", "name a file or folder")
            return link
        if os.path.join(path, "README.md") in TITLES:
            path = os.path.join(path, "README.md")
        return relative(place(path) if path in TITLES else self.copy(path), page) + hash_ + anchor


def framed(page, title, body):
    """A whole document: header, navigation, body, and the pages before and after."""
    order, parts = list(TITLES), []
    for part, pages in ORDER:
        links = "".join(
            f'<li><a href="{relative(place(p), page)}"{" aria-current=page" if p == page else ""}>{name}</a></li>'
            for p, name in pages)
        parts.append(f"<h2>{part}</h2><ul>{links}</ul>")
    i = order.index(page) if page in TITLES else -1
    beside = [(word, order[j]) for word, j in (("previous", i - 1), ("next", i + 1)) if i >= 0 and 0 <= j < len(order)]
    turn = "".join(f'<a rel={word[:4]} href="{relative(place(p), page)}">{TITLES[p]}</a>' for word, p in beside)
    root = relative(".", page)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}/style.css">
<script defer src="{root}/search.js" data-root="{root}"></script>
</head>
<body>
<header><a class="home" href="{root}/index.html">bench</a><a class="skip" href="#nav">Contents</a>
<input type="search" placeholder="Search" aria-label="Search" hidden></header>
<ol id="found" aria-live="polite" hidden></ol>
<main>
{body}
<footer>{turn}</footer>
</main>
<nav id="nav" aria-label="Contents">{"".join(parts)}</nav>
</body>
</html>
"""


def translated(site, page):
    """A page as HTML: links lead within the site, what is wide scrolls by itself, long pages list their parts."""
    done = subprocess.run(["pandoc", "-f", READER, "-t", "html5", "--wrap=none", os.path.join(ROOT, page)],
                          capture_output=True, text=True, check=True)
    text = re.sub(r"<!--.*?-->", "", done.stdout, flags=re.S)
    text = re.sub(r'(<(?:a|img)\b[^>]*?\b(?:href|src)=")([^"]*)"',
                  lambda m: m[1] + html.escape(site.target(page, html.unescape(m[2]))) + '"', text)
    text = text.replace("<table", '<div class="scroll" tabindex="0"><table').replace("</table>", "</table></div>")
    text = text.replace("<pre", '<pre tabindex="0"')
    parts = re.findall(r'<h2 id="([^"]*)">(.*?)</h2>', text, flags=re.S)
    if len(parts) > 3:
        items = "".join(f'<li><a href="#{name}">{re.sub("</?a.*?>", "", said)}</a></li>' for name, said in parts)
        text = text.replace("</h1>", f"</h1><details><summary>On this page</summary><ul>{items}</ul></details>", 1)
    return text


def plain(text):
    text = re.sub(r"</?(a|code|em|strong|del)\b[^>]*>", "", text)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def sections(page, text):
    """Of a page, for the search: address, page, heading, and what stands below it."""
    cut = re.split(r'<h[123] id="([^"]*)">(.*?)</h[123]>', re.sub(r"<details>.*?</details>", "", text, flags=re.S), flags=re.S)
    return [[place(page) + "#" + cut[i], TITLES[page], plain(cut[i + 1]), plain(cut[i + 2])] for i in range(1, len(cut), 3)]


class Read(html.parser.HTMLParser):
    """The names that a document of the site has, and what it leads to or loads."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = [], [], []
        with open(path, encoding="utf-8") as f:
            self.feed(f.read())

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.ids += [of["id"]] if "id" in of else []
        self.links += [of["href"]] if tag == "a" and "href" in of else []
        self.loads += [of[n] for n in ("src", "href") if tag != "a" and n in of]
        if tag == "img" and not of.get("alt"):
            fault(of.get("src"), "a picture without words", "![what it shows](...)")


def check(folder):
    """Every link of the site leads to a file of it and a name in there, and nothing is loaded from elsewhere."""
    pages = {p: Read(p) for p in glob.glob(os.path.join(folder, "**", "*.html"), recursive=True)}
    for path, read in sorted(pages.items()):
        name = os.path.relpath(path, folder)
        for twice in sorted({i for i in read.ids if read.ids.count(i) > 1}):
            fault(name, f"two headings #{twice}", "name them apart")
        for link in read.links + read.loads:
            at = urllib.parse.urlsplit(link)
            if at.scheme or at.netloc:
                if link in read.loads and link != "data:,":
                    fault(name, f"loads {link}", "copy it into the repository")
                continue
            to = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(at.path))) if at.path else path
            if not os.path.isfile(to):
                fault(name, f"{link} leads nowhere", "correct the link")
            elif at.fragment and urllib.parse.unquote(at.fragment) not in (pages[to].ids if to in pages else ()):
                fault(name, f"{link}: no heading of that name", "correct the link")


def main():
    folder = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build", "site"))
    site, index = Site(folder + ".new"), []
    shutil.rmtree(site.folder, ignore_errors=True)
    found = {os.path.relpath(p, ROOT) for pattern in PAGES for p in glob.glob(os.path.join(ROOT, pattern), recursive=True)}
    for page in sorted(found ^ set(TITLES)):
        fault(page, "is not there" if page in TITLES else "has no place", "ORDER in scripts/site/make.py")
    for page in (p for p in TITLES if p in found):
        text = translated(site, page)
        index += sections(page, text)
        title = plain(re.search(r"<h1.*?</h1>", text, flags=re.S)[0])
        site.write(place(page), framed(page, title if "bench" in title else title + " - bench", text))
    site.write("search-index.js", "var searchIndex = " + json.dumps(index, ensure_ascii=False).replace("</", "<\\/") + ";\n")
    for name in ("style.css", "search.js"):
        shutil.copyfile(os.path.join(HERE, name), site.path(name))
    check(site.folder)
    for line in faults:
        print(line, file=sys.stderr)
    if faults:
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(site.folder, folder)
    print(f"{len(TITLES)} pages in {os.path.relpath(folder)}, begin with {os.path.relpath(folder)}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
