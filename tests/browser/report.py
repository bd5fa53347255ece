#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The report in a real browser: report.py BENCH FOLDER.

Makes a small run with BENCH in FOLDER, writes its report, and opens it in headless Chromium from a
file. Checks errors, requests, the answer on top, figures that are pointed at and changed, tables that
are sorted, filtered and saved, copying, phones, dark mode, paper. A second report is of runs with known
rows, hostile texts, missing tables, preempted samples and wrong results. The last line counts. Needs Debian's chromium, chromium-driver and python3-selenium.
"""
import csv
import json
import math
import os
import re
import shutil
import subprocess
import sys
import traceback

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

SWEEP = ("--variant base --backend auto --workload layer,decode --seq 8,16 --mem 0,16 --d-model 32 "
         "--heads 2 --layers 1 --threads 1 --max-time 0.005 --min-samples 3 --warmup-ms 0 "
         "--block-ms 0.5 -q")
PHONE = 390
HOSTILE = "<script>alert('&\"x\"')</script><img src=x onerror=\"document.title='owned'\">{{script}}"
# variant, backend, sequence length, ns, status: on the first two lengths the backends are even, or one
# is slower by a half; the lengths that two alone has do not count.
KNOWN = (("first", "one", 128, 1000, "ok"), ("first", "two", 128, 1600, "ok"),
         ("first", "one", 256, 1500, "ok"), ("first", "two", 256, 1000, "ok"),
         ("first", "two", 512, 1000, "ok"), ("first", "two", 1024, 1000, "skipped"),
         (HOSTILE, "two", 512, 1000, "ok"))
TESTS = []


def test(f):
    TESTS.append(f)
    return f


def check(true, *what):
    if not true:
        raise AssertionError(" ".join(str(w) for w in what))


def rewrite(path, change):
    """Replace the rows of a table by change(rows)."""
    with open(path, encoding="utf-8", newline="") as table:
        reader = csv.DictReader(table)
        rows, names = list(reader), reader.fieldnames
    with open(path, "w", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(change(rows))


def known_rows(rows):
    for i, (variant, backend, seq, ns, status) in enumerate(KNOWN):
        yield dict(rows[0], case_id=f"{i:04}", variant=variant, backend=backend, seq_tokens=seq, median_ns=ns,
                   ci95_low_ns=ns, ci95_high_ns=ns, status=status, repro="--case " + str(i),
                   d_head=32 if variant == HOSTILE else 16,
                   status_detail=HOSTILE if status == "skipped" else "", samples=10, samples_disturbed=i)


def make_known(latest, known):
    shutil.rmtree(known, ignore_errors=True)
    os.makedirs(known)
    for name in ("latency.csv", "env.csv"):
        shutil.copy(os.path.join(latest, name), known)
    rewrite(os.path.join(known, "latency.csv"), known_rows)
    rewrite(os.path.join(known, "env.csv"), lambda rows: [dict(rows[0], run_id="known", cpu_model=HOSTILE, argv=HOSTILE)])


def make_changed(known, folder, change):
    """A run like the known one; change(row) of its latencies."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(known, folder)
    rewrite(os.path.join(folder, "latency.csv"), lambda rows: [dict(r, **change(r)) for r in rows])
    rewrite(os.path.join(folder, "env.csv"), lambda rows: [dict(rows[0], run_id=os.path.basename(folder))])


def make_reports(bench, folder):
    latest, *made = (os.path.join(folder, name) for name in ("latest", "known", "bare", "busy", "wrong", "again"))
    known, bare, busy, wrong, again = made
    pages = [os.path.join(folder, name) for name in ("report.html", "known.html", "study.html", "eval.html")]
    reference = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../results/reference")

    def run(*words):
        subprocess.run([bench, *words], check=True, stdout=subprocess.DEVNULL)
    run(*SWEEP.split(), "--out", folder)
    make_known(latest, known)
    shutil.rmtree(bare, ignore_errors=True)
    shutil.copytree(known, bare)
    os.remove(os.path.join(bare, "env.csv"))
    rewrite(os.path.join(bare, "latency.csv"), lambda rows: [])
    make_changed(known, busy, lambda row: {"samples_disturbed": row["samples"], "status_detail": "noisy",
                                           "median_ns": 2 * float(row["median_ns"])})
    make_changed(known, wrong, lambda row: {"status": "wrong"} if row["case_id"] == "0000" else {})
    shutil.rmtree(again, ignore_errors=True)
    shutil.copytree(known, again)  # of the same name
    run("report", latest, "-o", pages[0], "--force")
    run("report", *made, "-o", pages[1], "--force", "--figure", "backends")
    run("report", os.path.join(reference, "recipes"), "-o", pages[2], "--force", "--figure", "study")
    run("report", os.path.join(reference, "dtypes/eval/vanilla"), "-o", pages[3], "--force", "--figure", "perplexity-mem")
    return pages


def open_browser():
    options = Options()
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                 "--disable-background-networking", "--disable-component-update"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


class Page:
    """The reports, open in a browser."""

    def __init__(self, report, known, study, scores):
        self.study = "file://" + os.path.abspath(study)
        self.scores = "file://" + os.path.abspath(scores)
        self.url = "file://" + os.path.abspath(report)
        self.known = "file://" + os.path.abspath(known)
        self.browser = open_browser()
        self.browser.execute_cdp_cmd("Network.enable", {})
        self.load()

    def load(self, width=1280, scheme="light", url=None):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.browser.get(url or self.url)

    def texts(self, selector):
        return self.run("return Array.from(document.querySelectorAll(arguments[0]), e => e.textContent)", selector)

    def run(self, script, *words):
        return self.browser.execute_script(script, *words)

    def table(self):
        return self.browser.find_element(By.CSS_SELECTOR, "table.rows")

    def column(self, name):
        """Index of a column of the first table, and its button."""
        names = self.run("return Array.from(document.querySelectorAll('table.rows')[0].tHead.rows[0].cells,"
                         "c => c.dataset.column)")
        check(name in names, "no column", name, "in", names)
        at = names.index(name)
        return at, self.table().find_elements(By.CSS_SELECTOR, "thead button")[at]

    def open_rows(self):
        self.run("document.querySelector('#rows details').open = true")

    def values(self, column):
        return self.run("return Array.from(document.querySelector('table.rows').tBodies[0].rows,"
                        "r => r.hidden ? null : r.cells[arguments[0]].textContent).filter(v => v !== null)", column)

    def show_run(self, *names):
        """Only these, by the picker."""
        for box in self.browser.find_elements(By.CSS_SELECTOR, ".picker input"):
            if box.is_selected() != (box.get_attribute("name") in names):
                box.click()

    def choose(self, name, value):
        Select(self.browser.find_element(By.CSS_SELECTOR, f"#figures select[name={name}]")).select_by_value(value)

    def shown_series(self):
        return self.run("return Array.from(document.querySelectorAll('#figures .panels')[0]"
                        ".querySelectorAll('.series'), g => g.dataset.series)")

    def point_at(self, element):
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.browser).move_to_element(element).perform()

    def roomiest_mark(self):
        """Of the first figure: the box at the pointer is of the nearest mark, and some lie on each other."""
        return self.run("const at = m => { const r = m.getBoundingClientRect();"
                        " return [r.x + r.width / 2, r.y + r.height / 2]; };"
                        "const room = m => Math.min(...Array.from(m.closest('svg').querySelectorAll('.mark'))"
                        " .filter(o => o !== m).map(o => Math.hypot(at(o)[0] - at(m)[0], at(o)[1] - at(m)[1])));"
                        "return Array.from(document.querySelector('#figures .panels').querySelectorAll('.mark'))"
                        " .sort((a, b) => room(b) - room(a))[0]")

    def tip(self):
        """What the box at the pointer says, or None."""
        return self.run("const t = document.querySelector('.tip'); return t.hidden ? null : t.innerText")


def ns(text):
    """ "1.60 us" as nanoseconds."""
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


@test
def loads_without_errors(page):
    severe = [e for e in page.browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    check(not severe, severe)
    check(page.browser.title.startswith("bench: "), page.browser.title)


@test
def makes_no_requests(page):
    asked = []
    for entry in page.browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    check(page.url in asked, "the page itself is not in the log:", asked)
    check(all(url == page.url or url.startswith("data:") for url in asked), asked)


@test
def shows_figures(page):
    empty = page.run("return Array.from(document.querySelectorAll('figure svg')).filter("
                     "s => s.getBoundingClientRect().width < 200 || s.querySelectorAll('path').length < 5).length")
    check(empty == 0, empty, "empty figures")
    check(len(page.browser.find_elements(By.CSS_SELECTOR, "#figures .panel")) >= 4, "panels")
    check(len(page.browser.find_elements(By.CSS_SELECTOR, "section .paper svg")) >= 3, "figures of gnuplot")
    fonts = page.run("return Array.from(document.querySelectorAll('figure svg text'),"
                     "t => parseFloat(getComputedStyle(t).fontSize))")
    check(min(fonts) >= 9, "a font of", min(fonts))


@test
def says_what_was_measured(page):
    rows = len(page.values(0))
    check(page.texts(".verdict")[0].startswith(f"{rows} of {rows} rows measured, each checked"), page.texts(".verdict"))
    facts = dict(zip(page.texts("dt"), page.texts("dd")))
    check("CPU" in facts and "commit" in facts and facts["exit code"] == "0", facts)
    check(page.texts(".command code")[0].endswith("--out " + os.path.dirname(page.url[7:])), page.texts(".command code"))
    check(not page.run("return document.querySelector('noscript').getBoundingClientRect().height"), "noscript is shown")


@test
def answers_on_the_first_screen(page):
    for selector in (".verdict", ".ranking", ".times"):
        box = page.browser.find_element(By.CSS_SELECTOR, selector).rect
        check(0 < box["height"] and box["y"] < 844, selector, "begins at", box["y"])
    check(page.run("return !document.querySelector('dl.card').closest('details').open"), "the machine is not folded")
    lines = page.texts("table.ranking tr")
    with open(os.path.join(os.path.dirname(page.url[7:]), "latest", "latency.csv"), encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["status"] == "ok"]
    for name in {row["variant"] for row in rows} | {row["backend"] for row in rows}:
        check(any(line.startswith(name) for line in lines), name, "is not ranked in", lines)


@test
def shows_known_rows(page):
    page.load(url=page.known)
    page.show_run("known")
    check(page.texts(".verdict") == [
        "6 of 7 rows measured, each checked against the reference before it was timed. 1 skipped. "
        "21 of 70 samples were preempted by other processes."], page.texts(".verdict"))
    ranked = page.texts(".ranking tr")
    factor = f"{math.sqrt(1.6 / 1.5):.2f}"
    check("one1" in ranked and f"two{factor}x [{factor} {factor}]slower" in ranked, ranked)
    check("firstone/two1" in ranked, ranked)
    check(HOSTILE + "two1.00x [1.00 1.00]no difference shown" in ranked, ranked)
    cells = page.texts(".times td")
    check(cells == ["1.00 us [1.00 1.00]", "1.00 us [1.00 1.00]", "1.00 us [1.00 1.00]", "-", "-",
                    "1.00 us [1.00 1.00]"], cells)
    check(len(page.texts(".times .best")) == 3, page.texts(".times .best"))
    check(not page.run("return document.querySelector('#rows details').open"), "the rows are not folded")
    column, _ = page.column("median_ns")
    times = [ns(text) for text in page.values(column)]
    check(times == [row[3] for row in KNOWN], times)
    check(page.values(column + 1)[1] == "[1.60 1.60]", "the interval is not beside its median")
    order = [page.column(name)[0] for name in ("variant", "backend", "seq_tokens", "median_ns", "status")]
    check(order == sorted(order), order)
    column, _ = page.column("case_id")
    check(page.values(column) == [f"{i:04}" for i in range(len(KNOWN))], page.values(column))
    check("dtype f32" in page.texts(".same")[0], page.texts(".same"))
    left = page.texts("section:not([hidden]) .left")
    check(len(left) == 1 and f"latency: skipped, {HOSTILE} ./bench --case 5" in left[0], left)
    check("raw samples:" in left[0], left)


@test
def says_where_it_comes_from(page):
    with open(os.path.join(os.path.dirname(page.url[7:]), "latest", "env.csv"), encoding="utf-8") as table:
        row = next(csv.DictReader(table))
    origin = page.texts(".origin")[0]
    for name in ("cpu_model", "started_at_utc", "git_commit", "argv"):
        check(row[name] in origin, name, row[name], "is not in", origin)
    box = page.browser.find_element(By.CSS_SELECTOR, ".origin").rect
    check(0 < box["height"] and box["y"] < 400, box)


@test
def studies_begin_with_verdicts(page):
    page.load(url=page.study)
    first, *others = page.run("return Array.from(document.querySelectorAll('#answer > p'), p => p.innerText)")
    for name in ("xl", "llama"):
        check(f"books, {name}: The best rate is at an end of the tried ones for muon.\n" in first + "\n", first)
    check("rows scored" in others[0] or "No times here" in others[0], others)
    heads, rows = page.texts(".facts thead th"), page.texts(".facts tbody tr")
    check({"contender", "difference", "quality", "time ratio"} <= set(heads), heads)
    check("size" in heads or "note" in heads, heads)
    check(any("at an end" in row for row in rows), rows)
    box = page.browser.find_element(By.CSS_SELECTOR, ".facts").rect
    check(0 < box["height"] and box["y"] < 844, box)


@test
def scores_are_on_the_first_screen(page):
    page.load(url=page.scores)
    rows = page.texts(".facts tbody tr")
    check(len(rows) > 0 and all("vanilla" in row for row in rows), rows)
    check("perplexity" in page.texts(".facts thead th"), page.texts(".facts thead th"))
    box = page.browser.find_element(By.CSS_SELECTOR, ".facts").rect
    check(0 < box["height"] and box["y"] < 844, box)


@test
def sizes_of_a_variant_make_no_panel(page):
    page.load(url=page.known)
    titles = page.texts("#figures .panel figcaption")
    check(titles and not any("d_head" in title for title in titles), titles)


@test
def ticks_are_whole(page):
    """The last of them is as near to the edge as margins allow."""
    wide, edge = page.run("return [inside(WIDE - RIGHT - 0.05 * (WIDE - LEFT - RIGHT), '1 150 000'), WIDE]")
    check(wide["text-anchor"] == "end" and wide["x"] <= edge, wide)
    usual = page.run("return inside(LEFT + 100, '1 150 000')")
    check(usual == {"x": page.run("return LEFT + 100"), "text-anchor": "middle"}, usual)


@test
def what_rows_share_is_said_once(page):
    for url in (page.study, page.scores):
        page.load(url=url)
        columns = page.run(
            "return Array.from(document.querySelectorAll('.facts'), table => Array.from(table.tHead.rows[0].cells,"
            " (cell, i) => ({head: cell.textContent, look: cell.className,"
            " looks: Array.from(table.tBodies[0].rows, row => row.cells[i].className),"
            " texts: Array.from(table.tBodies[0].rows, row => row.cells[i].textContent)})))")
        for column in [c for table in columns for c in table]:
            check(set(column["looks"]) == {column["look"]}, column["head"], "is not above its numbers")
            if column["head"] in ("text", "backend", "seq", "corpus", "size", "seeds", "scored"):
                check(len(set(column["texts"])) > 1 or len(column["texts"]) == 1, column["head"], "is the same in all rows")


def time_span(text):
    """Lowest and highest nanoseconds of a time cell; its time where it has no interval, as the first by CPU time has none."""
    its = re.fullmatch(r"~?(\S+) (\S+)(?: CPU)? ?(?:\[(\S+) (\S+)\])?", text)
    check(its, "is no time:", text)
    time, unit, low, high = its.groups()
    return ns(f"{low or time} {unit}"), ns(f"{high or time} {unit}")


@test
def each_shape_has_a_first(page):
    """The rows are those that the ranking chose, also where medians say otherwise."""
    page.load()
    columns = page.run(
        "return Array.from(document.querySelectorAll('.times'), table => Array.from(table.tHead.rows[0].cells,"
        " (_, i) => Array.from(table.tBodies[0].rows, row => row.cells[i])).slice(1).map(cells =>"
        " cells.filter(cell => cell.classList.contains('best')).length))")
    check(columns and all(n == 1 for table in columns for n in table), columns)
    times = page.run(
        "return Array.from(document.querySelectorAll('.times'), table => Array.from(table.tHead.rows[0].cells,"
        " (_, i) => Array.from(table.tBodies[0].rows, row => row.cells[i])).slice(1).map(cells =>"
        " cells.sort((a, b) => b.classList.contains('best') - a.classList.contains('best')).map(cell => cell.textContent)))")
    for cells in [column for table in times for column in table]:
        spans = [time_span(text) for text in cells if text != "-"]
        slower = [high for _, high in spans[1:] if high < spans[0][0]]
        check(not slower, "another is shown to be faster than the first:", cells)


@test
def noisy_times_are_marked(page):
    page.load(url=page.known)
    page.show_run("busy")
    cells = [text for text in page.texts(".times td") if text != "-"]
    check(cells and all(text.startswith("~") for text in cells), cells)
    page.show_run("known")
    check(not any("~" in text for text in page.texts(".times td")), page.texts(".times td"))


@test
def colours_are_those_of_the_figures_of_gnuplot(page):
    """Of up to eight variants no two share one."""
    colours = page.run("return Array.from(document.querySelectorAll('#figures .legend')[0].querySelectorAll('svg'),"
                       "s => s.classList[0])")
    check(1 < len(colours) <= 8 and len(set(colours)) == len(colours), colours)


@test
def is_green_only_if_it_went_well(page):
    moods = {}
    page.load(url=page.known)
    for name in ("known", "bare", "busy", "wrong"):
        page.show_run(name)
        check(len(page.texts(".verdict")) == 1, page.texts(".verdict"))
        moods[name] = page.run("return document.querySelector('.verdict').classList[1]")
    check(moods == {"known": "good", "bare": "doubtful", "busy": "doubtful", "wrong": "bad"}, moods)
    check("1 wrong." in page.texts(".verdict strong")[0], page.texts(".verdict"))
    check(len(page.texts("tr.bad")) == 1, page.texts("tr.bad"))
    colours = page.run("return ['.verdict strong', 'tr.bad td', 'td'].map("
                       "s => getComputedStyle(document.querySelector(s)).color)")
    check(colours[0] == colours[1] != colours[2], colours)


@test
def lists_only_what_was_left_out(page):
    page.load(url=page.known)
    page.show_run("busy")  # all its rows have remarks
    left = page.texts("section:not([hidden]) .left > li")
    rows = [line for line in left if line.startswith("latency:")]
    check(len(rows) == 1 and rows[0].startswith("latency: skipped"), left)


@test
def says_what_is_missing(page):
    page.load(url=page.known)
    page.show_run("bare")
    check(page.texts(".verdict") == ["Nothing was measured."], page.texts(".verdict"))
    check(page.texts("#rows") == ["No table has a row."], page.texts("#rows"))
    bare = page.texts("section:not([hidden])")
    for said in ("env.csv has no row: the machine is not known.", "figure backends: "):
        check(len(bare) == 1 and said in bare[0], said, "is not in", bare)


@test
def lays_runs_over_each_other(page):
    page.load(url=page.known)
    page.show_run("known", "busy")
    check(len(page.browser.find_elements(By.CSS_SELECTOR, "section:not([hidden])")) == 2)
    check({"first \u00b7 known", "first \u00b7 busy"} <= set(page.shown_series()), page.shown_series())
    dashes = page.run("return Array.from(document.querySelectorAll('#figures .series'))"
                      ".filter(g => g.dataset.series.startsWith('first'))"
                      ".map(g => g.querySelector('.line').getAttribute('stroke-dasharray'))")
    check(len(set(dashes)) == 2, "runs look alike:", dashes)
    column, _ = page.column("run")
    check(set(page.values(column)) == {"known", "busy"}, page.values(column))
    page.show_run("known", "known (2)")
    check({"first \u00b7 known", "first \u00b7 known (2)"} <= set(page.shown_series()), page.shown_series())
    page.show_run("busy")
    check("first" in page.shown_series(), page.shown_series())
    check(all("known" not in text for text in page.texts("#answer")), page.texts("#answer"))


@test
def a_point_says_its_row(page):
    mark = page.roomiest_mark()
    page.point_at(mark)
    said = page.tip() or ""
    series = page.run("return arguments[0].parentNode.dataset.series", mark)
    check(series in said and " samples" in said and "./bench --variant " in said, said)
    times = page.run("return Array.from(document.querySelectorAll('.tip div b'), b => b.textContent)")
    column, _ = page.column("median_ns")
    intervals = [interval for time, interval in zip(page.values(column), page.values(column + 1)) if time == times[0]]
    check(any(interval in said for interval in intervals), "none of", intervals, "is in", said)
    page.point_at(page.browser.find_element(By.TAG_NAME, "h1"))
    check(page.tip() is None, page.tip())
    page.point_at(mark)
    ActionChains(page.browser).click().perform()
    page.point_at(page.browser.find_element(By.TAG_NAME, "h1"))
    check(page.tip() and page.browser.find_element(By.CSS_SELECTOR, ".tip .copy").is_displayed(), "it does not stay")
    page.browser.find_element(By.TAG_NAME, "h1").click()
    check(page.tip() is None, page.tip())


@test
def legend_hides_series(page):
    before = set(page.shown_series())
    button = page.browser.find_element(By.CSS_SELECTOR, "#figures .legend button")
    name = button.text.strip()
    check(name in before and len(before) > 1, name, "of", before)
    button.click()
    check(set(page.shown_series()) == before - {name}, page.shown_series())
    check(button.get_attribute("aria-pressed") == "false", button.get_attribute("aria-pressed"))
    button.click()
    check(set(page.shown_series()) == before, page.shown_series())
    ActionChains(page.browser).double_click(button).perform()
    check(set(page.shown_series()) == {name}, page.shown_series())


@test
def axes_can_be_changed(page):
    def drawn():
        return page.run("const p = document.querySelector('#figures .panel'); return [p.textContent,"
                        "p.querySelector('.line').getAttribute('d'), p.querySelector('svg').getAttribute('aria-label')]")
    _, line, label = drawn()
    check("median against seq" in label, label)
    page.browser.find_element(By.CSS_SELECTOR, "#figures input[name='log y']").click()
    check(drawn()[1] != line, "the line of another scale is the same")
    page.choose("y", "tokens_per_s")
    page.choose("x", "mem_tokens")
    check("tokens/s against mem" in drawn()[2], drawn()[2])
    page.choose("y", "gflop_per_s")
    check("GFLOP/s" in drawn()[0], drawn()[0])
    variants = set(page.shown_series())
    page.choose("lines", "backends")
    backends = set(page.shown_series())
    check(len(backends) > 1 and not variants & backends, variants, backends)
    page.choose("lines", "variants")
    page.choose("backend", "ref")
    page.point_at(page.browser.find_element(By.CSS_SELECTOR, "#figures .panel .mark"))
    check("--backend ref" in (page.tip() or ""), page.tip())


@test
def shows_hostile_texts_as_texts(page):
    page.load(url=page.known)
    check(page.browser.title == "bench: known", page.browser.title)
    check(page.run("return document.querySelectorAll('img').length") == 0, "an image of a table's text")
    check(page.run("return document.querySelectorAll('script').length") == 1, "a script of a table's text")
    check(any(HOSTILE in text for text in page.texts(".legend button")), page.texts(".legend button"))
    check(any(HOSTILE in text for text in page.texts(".times th")), page.texts(".times th"))
    for selector in ("dd", ".command code", ".ranking th", ".rows td", ".left code"):
        wanted = "./bench --case 5" if selector == ".left code" else HOSTILE
        check(wanted in page.texts(selector), selector, page.texts(selector))
    copied = page.run("return document.querySelector('.command button').dataset.copy")
    check(copied == HOSTILE, copied)
    severe = [e for e in page.browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
    check(not severe, severe)
    twice = page.run("const ids = Array.from(document.querySelectorAll('[id]'), e => e.id);"
                     "return ids.filter((id, i) => ids.indexOf(id) !== i)")
    check(not twice, twice)


@test
def sorts(page):
    page.open_rows()
    column, button = page.column("median_ns")
    button.click()
    up = [ns(v) for v in page.values(column) if v]
    check(len(up) > 20 and up == sorted(up), "not ascending:", up[:5])
    button.click()
    down = [ns(v) for v in page.values(column) if v]
    check(down == sorted(up, reverse=True), "not descending:", down[:5])
    head = button.find_element(By.XPATH, "..")
    check(head.get_attribute("aria-sort") == "descending", head.get_attribute("aria-sort"))
    column, button = page.column("variant")
    button.click()
    names = page.values(column)
    check(names == sorted(names) and len(set(names)) > 2, names[:5])


@test
def filters(page):
    page.open_rows()
    column, _ = page.column("variant")
    before = page.values(column)
    wanted = before[0]
    box = page.browser.find_element(By.CSS_SELECTOR, "#rows input[type=search]")
    box.send_keys(wanted + " decode")
    shown = page.values(column)
    check(0 < len(shown) < len(before), len(shown), "of", len(before))
    check(set(shown) == {wanted}, set(shown))
    count = page.browser.find_element(By.CSS_SELECTOR, "#rows .count").text
    check(count == f"{len(shown)} of {len(before)} rows", count)
    box.clear()
    box.send_keys("x")
    box.send_keys("\b")
    check(len(page.values(column)) == len(before), "rows are lost")


@test
def copies_a_line(page):
    page.open_rows()
    page.browser.execute_cdp_cmd("Browser.grantPermissions", {
        "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    button = page.browser.find_element(By.CSS_SELECTOR, "td.repro button.copy")
    wanted = button.get_attribute("data-copy")
    check(wanted.startswith("./bench --variant "), wanted)
    page.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", button)
    button.click()
    WebDriverWait(page.browser, 5).until(lambda _: button.text == "copied")
    got = page.browser.execute_async_script(
        "navigator.clipboard.readText().then(arguments[0], e => arguments[0]('' + e))")
    check(got == wanted, got, "instead of", wanted)


@test
def tables_can_be_saved(page):
    page.open_rows()
    check(page.texts("#rows details[open] a.save") == ["download CSV"], page.texts("#rows a.save"))
    for name in ("latency.csv", "memory.csv", "perplexity.csv", "env.csv"):
        text = page.run(
            "const a = Array.from(document.querySelectorAll('a.save')).find("
            "a => a.download.endsWith('-' + arguments[0]));"
            "return decodeURIComponent(a.href.slice(a.href.indexOf(',') + 1))", name)
        with open(os.path.join(os.path.dirname(page.url[7:]), "latest", name),
                  encoding="utf-8") as table:
            check(text == table.read(), name, "is not what the link saves")


def contrast(page, selector):
    """WCAG contrast of an element's text against its background."""
    return page.run("""
        const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
        const light = (c) => {
            const [r, g, b] = c.map(v => v / 255).map(
                v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const e = document.querySelector(arguments[0]);
        let back = e, paper;
        do {
            paper = rgb(getComputedStyle(back).backgroundColor);
            back = back.parentElement;
        } while (back && paper.length === 4 && paper[3] === 0);
        if (paper.length === 4 && paper[3] === 0) paper = [255, 255, 255];
        const style = getComputedStyle(e);
        const a = light(rgb(e instanceof SVGElement ? style.fill : style.color).slice(0, 3));
        const b = light(paper.slice(0, 3));
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)""", selector)


def readable(page):
    for selector in ("h1", ".verdict", "dt", "dd", "td.n", "td.interval", "td", "thead th button", "figcaption",
                     "summary", "a.save", "button.copy", "code", ".same", ".panel .tick", ".panel .label",
                     ".legend button", ".times small"):
        value = contrast(page, selector)
        check(value >= 4.5, selector, "has contrast", round(value, 2))
    for i in range(8):
        page.run("document.querySelector('h1').className = 'c' + arguments[0]", i)
        check(contrast(page, "h1") >= 2, "colour", i, "has contrast", round(contrast(page, "h1"), 2))


@test
def light_is_readable(page):
    readable(page)


@test
def dark_is_readable(page):
    page.load(scheme="dark")
    page_colour = page.run("return getComputedStyle(document.body).backgroundColor")
    check(sum(int(v) for v in page_colour[4:-1].split(",")) < 200, "not dark:", page_colour)
    readable(page)


@test
def phone_does_not_scroll_sideways(page):
    page.load(width=PHONE)
    for part in page.browser.find_elements(By.TAG_NAME, "details"):
        page.run("arguments[0].open = true", part)
    wide = page.run("return document.documentElement.scrollWidth")
    check(wide <= PHONE, "the page is", wide, "wide")
    out = page.run("return Array.from(document.querySelectorAll('main *')).filter(e => !e.closest('.scroll') &&"
                   "e.getBoundingClientRect().right > arguments[0] + 0.5).map(e => e.tagName + '.' + e.className)",
                   PHONE)
    check(not out, "outside the screen:", out)


@test
def prints_everything(page):
    page.load(scheme="dark")
    page.browser.find_element(By.CSS_SELECTOR, "#figures .legend button").click()
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    closed = page.run("return document.querySelectorAll('details:not([open])').length")
    check(closed == 0, closed, "closed parts")
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [
        {"name": "prefers-color-scheme", "value": "dark"}]})
    try:
        for selector in (".controls", ".filter", ".copy", ".tip", ".legend [aria-pressed=false]"):
            check(not page.browser.find_element(By.CSS_SELECTOR, selector).is_displayed(), selector, "is printed")
        for selector in (".ranking", ".times", ".panel svg", ".rows", "dl.card"):
            check(page.browser.find_element(By.CSS_SELECTOR, selector).is_displayed(), selector, "is not printed")
        for name, printed in (("median_ns", True), ("repro", True), ("impl", False)):
            cell = page.browser.find_element(By.CSS_SELECTOR, f".rows th[data-column={name}]")
            check(cell.is_displayed() == printed, name, "on paper:", not printed)
        wide = page.run("return Array.from(document.querySelectorAll('.rows'), t => t.getBoundingClientRect().width)")
        check(max(wide) <= 1280, "tables are", wide, "wide")
        check(page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)", "dark paper")
        check(contrast(page, ".panel .label") >= 4.5, "text is not dark")
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@test
def without_a_script_links_hold_the_tables(page):
    page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.load()
        said = page.browser.find_element(By.CSS_SELECTOR, "noscript").text
        links = page.browser.find_elements(By.CSS_SELECTOR, "a[data-table]")
        check("hold them as CSV" in said, said)
        check(len(links) >= 4 and all(link.is_displayed() for link in links), len(links), "links")
    finally:
        page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def main():
    bench, folder = sys.argv[1:]
    passed = failed = 0
    page = Page(*make_reports(os.path.abspath(bench), os.path.abspath(folder)))
    try:
        for f in TESTS:
            try:
                if f not in (loads_without_errors, makes_no_requests):
                    page.load()
                f(page)
                passed += 1
            except Exception as fault:  # after a failure the other tests still run
                failed += 1
                print(f"FAILED {f.__name__}: {fault}", file=sys.stderr)
                if not isinstance(fault, AssertionError):
                    traceback.print_exc()
    finally:
        page.browser.quit()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
