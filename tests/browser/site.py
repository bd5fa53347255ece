#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The site in a real browser: site.py FOLDER, as `make site` wrote it.

Opens every page in headless Chromium, from files and from a server of this machine: nothing fails or comes from
elsewhere, pictures are there, a phone does not scroll sideways, text is readable, navigation goes from the first page
to the last, the search finds. The last line counts. Needs Debian's chromium, chromium-driver and python3-selenium.
"""
import functools
import glob
import http.server
import json
import os
import sys
import tempfile
import threading
import traceback

from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from report import check, contrast, open_browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/site"))
import make  # noqa: E402

PHONE, SCREEN = 400, 1280


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Site:
    def __init__(self, folder, root):
        self.root, self.browser = root, open_browser()
        self.pages = sorted(os.path.relpath(p, folder) for p in glob.glob(folder + "/**/*.html", recursive=True))

    def run(self, script, *words):
        return self.browser.execute_script(script, *words)

    def load(self, page, width=SCREEN, scheme="light"):
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 600})
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.browser.get(self.root + page)

    def asked(self):
        """Addresses that were loaded since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance"))
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def pages_load(site):
    check(len(site.pages) > 30, len(site.pages), "pages")
    for page in site.pages:
        site.load(page)
        said = [e for e in site.browser.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]
        check(not said, page, said)
        other = [url for url in site.asked() if not url.startswith((site.root, "data:"))]
        check(not other, page, "asks for", other)
        check(site.run("return document.querySelectorAll('h1').length") == 1, page, "headings")
        broken = site.run("return Array.from(document.images).filter(i => !i.complete || !i.naturalWidth).map(i => i.src)")
        check(not broken, page, "pictures:", broken)


def pages_fit(site):
    for page in site.pages:
        for width in (PHONE, SCREEN):
            site.load(page, width)
            wide = site.run("return document.documentElement.scrollWidth")
            check(wide <= width, page, "is", wide, "wide on a screen of", width)
            out = site.run("return Array.from(document.querySelectorAll('body *')).filter(e => !e.closest('.scroll, pre')"
                           " && e.getBoundingClientRect().right > arguments[0] + 0.5).map(e => e.outerHTML.slice(0, 80))", width)
            check(not out, page, "outside a screen of", width, out)


def text_is_readable(site):
    papers = set()
    for scheme in ("light", "dark"):
        site.load("index.html", scheme=scheme)
        papers.add(site.run("return getComputedStyle(document.body).backgroundColor"))
        for selector in ("h1", "main p", "main a", "code", "pre code", "td", "th", "nav h2", "nav a", ".home", "input", "summary"):
            value = contrast(site, selector)
            check(value >= 4.5, scheme, selector, "has contrast", round(value, 2))
    check(len(papers) == 2, "light and dark are alike:", papers)


def navigation_leads_through_all(site):
    for width in (PHONE, SCREEN):
        site.load("index.html", width)
        for e in site.browser.find_elements(By.CSS_SELECTOR, ".skip"):
            if e.is_displayed():
                e.click()
        links = site.browser.find_elements(By.CSS_SELECTOR, "nav a")
        listed = [e.get_attribute("href") for e in links]
        check(all(e.is_displayed() for e in links) and len(set(listed)) == len(listed) > 30, len(listed), "links")
        check(set(site.root + p for p in site.pages) >= set(listed), listed)
        top = links[0].rect["y"] - site.run("return window.scrollY")
        check(0 <= top < 844, "the contents begin at", top)
    links[1].click()
    check(site.browser.current_url == listed[1], site.browser.current_url)
    site.load("index.html")
    seen = [site.browser.current_url]
    while following := site.browser.find_elements(By.CSS_SELECTOR, "a[rel=next]"):
        following[0].click()
        seen.append(site.browser.current_url)
    check(seen == listed, "by its ends:", seen)
    marked = site.run("return document.querySelector('nav [aria-current]').href")
    check(marked == listed[-1], marked, "is marked")


def search_finds(site):
    for page in ("index.html", "results/reference/leaderboard.html"):
        site.load(page)
        box = site.browser.find_element(By.CSS_SELECTOR, "input[type=search]")
        site.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: '/'}))")
        box.send_keys("Transformer-XL")
        found = WebDriverWait(site.browser, 20).until(lambda b: b.find_elements(By.CSS_SELECTOR, "#found a"))
        check(3 <= len(found) <= 20 and all(e.is_displayed() for e in found), len(found), "found")
        texts = site.run("return Array.from(document.querySelectorAll('#found li'), e => e.textContent)")
        check(any("Transformer-XL" in t for t in texts), texts)
        box.clear()
        box.send_keys("SYSROOT cross arm64")
        check(site.browser.find_element(By.CSS_SELECTOR, "#found a").text.startswith("Install"), "Install is not first")
        site.browser.find_element(By.CSS_SELECTOR, "#found a").click()
        check("docs/install.html#" in site.browser.current_url, site.browser.current_url)
        box = site.browser.find_element(By.CSS_SELECTOR, "input[type=search]")
        box.send_keys("sysroot zzqx")
        WebDriverWait(site.browser, 20).until(lambda b: "Nothing" in b.find_element(By.ID, "found").text)
        box.send_keys("\ue00c")  # Escape
        check(not site.browser.find_element(By.ID, "found").is_displayed(), "it stays")


def faults_are_said(_):
    """Of the generator: each kind of wrong link, picture or name is one line."""
    with tempfile.TemporaryDirectory() as folder:
        for wrong, said in (('<a href="no.html">x</a>', "leads nowhere"), ('<a href="#no">x</a>', "no heading"),
                            ('<a href="b.html#no">x</a>', "no heading"), ('<img src="no.svg" alt="x">', "leads nowhere"),
                            ('<img src="b.html">', "without words"), ('<p id="x"></p><p id="x"></p>', "two headings"),
                            ('<script src="https://a.b/c.js"></script>', "loads https"), ('<a href="b.html#b">x</a>', "")):
            for name, text in (("a.html", wrong), ("b.html", '<p id="b">')):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                    f.write(text)
            make.faults.clear()
            make.check(folder)
            check(len(make.faults) == (said != "") and said in "".join(make.faults), wrong, make.faults)
        for link, said in (("no.md", "not there"), ("../../../x", "not there"), ("ftp://a.b", "no address"), ("https:/a", "no address"),
                           ("https://a.b/c", ""), ("../Makefile", ""), ("tasks.md#x", "")):
            make.faults.clear()
            make.Site(folder).target("docs/install.md", link)
            check(len(make.faults) == (said != "") and said in "".join(make.faults), link, make.faults)


TESTS = (faults_are_said, pages_load, pages_fit, text_is_readable, navigation_leads_through_all, search_finds)


def main():
    folder = os.path.abspath(sys.argv[1])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    passed = failed = 0
    for root in (f"file://{folder}/", f"http://127.0.0.1:{server.server_port}/"):
        site = Site(folder, root)
        try:
            for test in TESTS:
                try:
                    test(site)
                    passed += 1
                except Exception as fault:  # after a failure the other tests still run
                    failed += 1
                    print(f"FAILED {test.__name__} of {root}: {fault}", file=sys.stderr)
                    if not isinstance(fault, AssertionError):
                        traceback.print_exc()
        finally:
            site.browser.quit()
    server.shutdown()
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
