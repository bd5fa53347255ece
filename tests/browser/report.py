#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The report in a real browser: report.py BENCH FOLDER.

Makes a small run with BENCH in FOLDER, writes its report, and opens it in headless Chromium from a
file. Checks errors, requests, contents of the tables, sorting, filtering,
copying, phones, dark mode. A second report is of runs with known rows, hostile texts and missing
tables. The last line counts. Needs Debian's chromium, chromium-driver and python3-selenium.
"""
import csv
import json
import os
import shutil
import subprocess
import sys
import traceback

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

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
                   status_detail=HOSTILE if status == "skipped" else "", samples=10, samples_disturbed=i)


def make_known(latest, known):
    shutil.rmtree(known, ignore_errors=True)
    os.makedirs(known)
    for name in ("latency.csv", "env.csv"):
        shutil.copy(os.path.join(latest, name), known)
    rewrite(os.path.join(known, "latency.csv"), known_rows)
    rewrite(os.path.join(known, "env.csv"), lambda rows: [dict(rows[0], cpu_model=HOSTILE, argv=HOSTILE)])


def make_reports(bench, folder):
    latest, known, bare = (os.path.join(folder, name) for name in ("latest", "known", "bare"))
    pages = [os.path.join(folder, name) for name in ("report.html", "known.html")]

    def run(*words):
        subprocess.run([bench, *words], check=True, stdout=subprocess.DEVNULL)
    run(*SWEEP.split(), "--out", folder)
    make_known(latest, known)
    shutil.rmtree(bare, ignore_errors=True)
    shutil.copytree(known, bare)
    os.remove(os.path.join(bare, "env.csv"))
    rewrite(os.path.join(bare, "latency.csv"), lambda rows: [])
    run("report", latest, "-o", pages[0], "--force")
    run("report", known, bare, "-o", pages[1], "--force", "--figure", "latency-seq")
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

    def __init__(self, report, known):
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
        for i, head in enumerate(self.table().find_elements(By.TAG_NAME, "th")):
            if head.text.split()[0] == name:
                return i, head.find_element(By.TAG_NAME, "button")
        raise AssertionError("no column " + name)

    def values(self, column):
        return self.run("return Array.from(document.querySelector('table.rows').tBodies[0].rows,"
                        "r => r.hidden ? null : (r.cells[arguments[0]].dataset.v ??"
                        "r.cells[arguments[0]].textContent)).filter(v => v !== null)", column)


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
    count, empty = page.run(
        "const all = Array.from(document.querySelectorAll('figure svg'));"
        "return [all.length, all.filter(s => s.getBoundingClientRect().width < 200 ||"
        " s.querySelectorAll('path').length < 10).length]")
    check(count >= 4, count, "figures")
    check(empty == 0, empty, "empty figures")
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
def shows_known_rows(page):
    page.load(url=page.known)
    check(page.run("return document.querySelectorAll('section').length") == 2)
    check(page.texts(".verdict")[0] == "6 of 7 rows measured, each checked against the reference before it was timed. "
          "1 skipped. 21 of 70 samples were preempted by other processes.", page.texts(".verdict"))
    check(page.texts(".verdict")[1] == "Fastest backend over all: one, 1.22x of the best time of each case (geometric "
          "mean; 2 cases that all 2 backends have).", page.texts(".verdict"))
    cells = page.texts(".matrix td")
    check(cells == ["1.22x (2)", "1.17x (3)", "-", "1.00x (1)"], cells)
    check(page.texts(".matrix .best") == ["1.00x (1)"], page.texts(".matrix .best"))
    column, _ = page.column("median_ns")
    check(page.values(column) == [str(row[3]) for row in KNOWN], page.values(column))
    column, _ = page.column("case_id")
    check(page.values(column) == [f"{i:04}" for i in range(len(KNOWN))], page.values(column))
    check("dtype f32" in page.texts(".same")[0], page.texts(".same"))
    left = page.texts(".left")[0]
    check("figure latency-seq" not in left and f"latency: skipped, {HOSTILE} ./bench --case 5" in left, left)


@test
def says_what_is_missing(page):
    page.load(url=page.known)
    bare = page.texts("section")[1]
    for said in ("0 of 0 rows measured.", "env.csv has no row: the machine is not known.", "latency.csv has no row.",
                 "figure latency-seq: latency.csv has no row with a time"):
        check(said in bare, said, "is not in", bare)


@test
def shows_hostile_texts_as_texts(page):
    page.load(url=page.known)
    check(page.browser.title.startswith("bench: 2"), page.browser.title)
    check(page.run("return document.querySelectorAll('img').length") == 0, "an image of a table's text")
    check(page.run("return document.querySelectorAll('script').length") == 1, "a script of a table's text")
    for selector in ("dd", ".command code", ".matrix th", ".rows td", ".left code"):
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
    column, button = page.column("median_ns")
    button.click()
    up = [float(v) for v in page.values(column) if v]
    check(len(up) > 20 and up == sorted(up), "not ascending:", up[:5])
    button.click()
    down = [float(v) for v in page.values(column) if v]
    check(down == sorted(up, reverse=True), "not descending:", down[:5])
    head = button.find_element(By.XPATH, "..")
    check(head.get_attribute("aria-sort") == "descending", head.get_attribute("aria-sort"))
    column, button = page.column("variant")
    button.click()
    names = page.values(column)
    check(names == sorted(names) and len(set(names)) > 2, names[:5])


@test
def filters(page):
    column, _ = page.column("variant")
    before = page.values(column)
    wanted = before[0]
    box = page.browser.find_element(By.CSS_SELECTOR, "input[type=search]")
    box.send_keys(wanted + " decode")
    shown = page.values(column)
    check(0 < len(shown) < len(before), len(shown), "of", len(before))
    check(set(shown) == {wanted}, set(shown))
    count = page.browser.find_element(By.CSS_SELECTOR, ".count").text
    check(count == f"{len(shown)} of {len(before)} rows", count)
    box.clear()
    box.send_keys("x")
    box.send_keys("\b")
    check(len(page.values(column)) == len(before), "rows are lost")


@test
def copies_a_line(page):
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
    for selector in ("h1", ".verdict", "dt", "dd", "td.n", "td", "thead th button", "figcaption", "summary",
                     "a.save", "button.copy", "code", ".same", "figure svg text"):
        value = contrast(page, selector)
        check(value >= 4.5, selector, "has contrast", round(value, 2))


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
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    closed = page.run("return document.querySelectorAll('details:not([open])').length")
    check(closed == 0, closed, "closed parts")


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
