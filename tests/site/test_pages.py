"""Every page of the built site in a real browser: what it says, shows and points at."""

import ast
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote, urldefrag, urlsplit

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from conftest import DESKTOP, PHONE, SITE

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 90

pytestmark = pytest.mark.timeout(900)  # the first case waits until a browser has opened all pages


def test_no_page_has_anything_on_the_console(visits, browser):
    assert len(visits) > 40
    assert browser.console == []


def test_nothing_is_asked_of_other_servers(visits, browser, address):
    assert len(browser.requests) > len(visits)
    elsewhere = [url for url in browser.requests if not url.startswith((address, "data:", "blob:", "chrome"))]
    assert elsewhere == []


def test_every_link_and_anchor_leads_somewhere(visits, address):
    dead = []
    for page, visit in visits.items():
        for link in visit.links:
            target, anchor = urldefrag(link)
            if not target.startswith(address):
                continue
            name = unquote(target[len(address):]).split("?")[0]
            name += "index.html" if name.endswith("/") or not name else ""
            if not (SITE / name).is_file() or (anchor and unquote(anchor) not in ids_of(name, visits)):
                dead.append((page, link))
    assert sum(len(visit.links) for visit in visits.values()) > 1000
    assert dead == []


def ids_of(name, visits):
    return visits[name].ids if name in visits else re.findall(r'\bid="([^"]+)"', (SITE / name).read_text())


def test_links_that_leave_the_site_are_few_and_known(visits, address):
    """What a document points at in the repository is a page here."""
    away = {link for visit in visits.values() for link in visit.links if not link.startswith(address)}
    assert [link for link in away if not link.startswith(("https://", "mailto:"))] == []
    assert [link for link in away if "/blob/" in link] == []


def test_pictures_are_drawn(visits):
    images = [(page, *image) for page, visit in visits.items() for image in visit.images]
    assert len(images) >= 6
    assert [image for image in images if image[2] == 0] == []
    drawn = {re.sub(r".*/", "", source) for _, source, _ in images}
    assert {"sequential.svg", "in-flight.svg", "contention.svg", "blind-delete.svg"} <= drawn


def test_pages_fit_a_phone(visits):
    width = PHONE["width"]
    assert {name: visit.phone for name, visit in visits.items()
            if visit.phone["window"] != width or visit.phone["body"] > width or visit.phone["font"] < 12} == {}


def test_every_document_is_a_page_of_the_navigation(visits, address):
    documents = [path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").glob("*.md")]
    manuals = [f"man/{path.name}.html" for path in (ROOT / "docs/man").glob("*.[1-9]")]
    assert len(documents) > 10 and len(manuals) >= 3
    listed = {urldefrag(link)[0][len(address):] for link in visits["index.html"].navigation}
    assert [name for name in map(str, [*documents, *manuals]) if name not in listed] == []


LANDING = """
  const shown = selector => Array.from(document.querySelectorAll(selector)).filter(e => e.offsetParent);
  return {
    title: document.querySelector('.md-content h1').firstChild.textContent,
    lead: document.querySelector('.lead').innerText,
    snippets: shown('.pair code').map(e => [e.innerText, e.scrollWidth <= e.clientWidth]),
    bullets: shown('.grid.cards')[0].querySelectorAll('li').length,
    tabs: shown('.tabbed-labels > label').map(e => e.innerText),
    open: shown('.tabbed-block').map(e => e.innerText),
    sections: shown('.grid.cards li > p:first-child a').map(e => e.innerText),
    sideways: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  };
"""
TYPED = {"Shell": "redlock bootstrap --new", "Python": "pip install .", "PHP": "phpize && ./configure",
         "C": "redlock_client_open(client)"}  # what each tab has people type


@pytest.mark.parametrize("metrics", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_first_page_shows_what_it_is_and_how_to_begin(browser, address, metrics):
    browser.window(metrics)
    driver = browser.open(address).driver
    seen = driver.execute_script(LANDING)
    assert seen["title"] == "libredlock" and "independent Redis or Valkey servers" in seen["lead"]
    (shell, shell_fits), (python, python_fits) = seen["snippets"]
    assert "redlock run" in shell and "with client.lock" in python and shell_fits and python_fits
    assert seen["bullets"] == 6 and seen["tabs"] == list(TYPED) and not seen["sideways"]
    assert {"Guides", "Reference", "Migrate", "Design", "Contribute"} <= set(seen["sections"])
    labels = driver.find_elements(By.CSS_SELECTOR, ".tabbed-labels > label")
    for label, line in zip(labels, TYPED.values()):
        label.click()
        WebDriverWait(driver, PATIENCE_S).until(lambda _, line=line: [
            block for block in driver.execute_script(LANDING)["open"] if line in block])
        assert len(driver.execute_script(LANDING)["open"]) == 1


def search(browser, address, metrics, word):
    """Types a word into the search; what the page says of the first letters may stand there for a while."""
    browser.window(metrics)
    driver = browser.open(address).driver
    wait = WebDriverWait(driver, PATIENCE_S)
    if metrics is PHONE:
        driver.find_element(By.CSS_SELECTOR, ".md-header label[for=__search]").click()
    field = wait.until(lambda _: driver.find_element(By.CSS_SELECTOR, ".md-search__input"))
    wait.until(lambda _: field.is_displayed())
    field.send_keys(word)
    return wait


def first_result(driver, word):
    """None until the results are those of the whole word: links have the pages highlight it."""
    links = driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
    highlighted = [parse_qs(urlsplit(link.get_attribute("href")).query).get("h", [""])[0] for link in links]
    return links[0] if word.lower() in highlighted else None


@pytest.mark.parametrize("metrics", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("word, page", [
    ("Kleppmann", "docs/faq.html"),
    ("redlock_lock_settle", "api/c/redlock_lock_settle.html"),
])
def test_search_finds_a_word_and_the_result_opens(browser, address, metrics, word, page):
    browser.listen()
    said_before = len(browser.console)
    search(browser, address, metrics, word)

    def open_first(driver):  # the list may be drawn anew while the answers come
        first = first_result(driver, word)
        if first is None or not first.is_displayed():
            return False
        assert page in first.get_attribute("href")
        first.click()
        return True

    WebDriverWait(browser.driver, PATIENCE_S, ignored_exceptions=[StaleElementReferenceException]).until(
        open_first, f"no answer for '{word}'")
    WebDriverWait(browser.driver, PATIENCE_S).until(lambda driver: page in driver.current_url)
    assert word in browser.driver.find_element(By.CSS_SELECTOR, ".md-content").text
    browser.listen()
    assert browser.console[said_before:] == []


@pytest.mark.parametrize("words, page", [
    ("replace a node", "docs/day-two.html"), ("list all locks", "docs/python.html"),
    ("raise max_ttl", "docs/day-two.html"),
])
def test_search_finds_guides_first(browser, address, words, page):
    search(browser, address, DESKTOP, words)

    def first_is_the_guide(driver):
        links = driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link")
        return links and page in links[0].get_attribute("href")

    WebDriverWait(browser.driver, PATIENCE_S, ignored_exceptions=[StaleElementReferenceException]).until(
        first_is_the_guide, f"{page} is not the first answer for '{words}'")


def test_pages_for_contributors_are_not_found(browser, address):
    search(browser, address, DESKTOP, "floors.py")
    WebDriverWait(browser.driver, PATIENCE_S).until(lambda driver: "No matching documents" in driver.find_element(
        By.CSS_SELECTOR, ".md-search-result__meta").get_attribute("textContent"))


def test_troubleshooting_reads_on_a_phone(browser, address):
    """Nothing on it is wider than the screen, and each reason is an anchor."""
    browser.window({**PHONE, "width": 390})
    driver = browser.open(address + "docs/troubleshooting.html").driver
    wide = driver.execute_script("return Array.from(document.querySelectorAll('.md-content *'))"
                                 ".filter(e => e.scrollWidth > 390 || e.getBoundingClientRect().right > 390).length")
    assert wide == 0 and len(driver.find_elements(By.CSS_SELECTOR, "a[id]:not([href])")) > 50


def test_the_table_of_commands_reads_on_a_phone(browser, address):
    """What a command does is not as narrow as a word."""
    browser.window({**PHONE, "width": 390})
    driver = browser.open(address + "docs/redlock.html").driver
    width = driver.execute_script("return document.querySelector('.md-content td:nth-child(2)').offsetWidth")
    assert width > 180, width


def test_the_reference_of_python_begins_with_the_client(browser, address):
    text = browser.open(address + "api/python.html").driver.page_source
    first, second = re.findall(r'<h3 id="libredlock\.(\w+)"', text)[:2]
    assert (first, second) == ("Client", "Lock")


def test_search_says_that_there_is_nothing(browser, address):
    wait = search(browser, address, DESKTOP, "zzyzx")
    wait.until(lambda driver: "No matching documents" in driver.find_element(
        By.CSS_SELECTOR, ".md-search-result__meta").get_attribute("textContent"))
    assert browser.driver.find_elements(By.CSS_SELECTOR, ".md-search-result__link") == []


def test_the_demo_page_has_the_whole_run(browser, address):
    text = browser.open(address + "demo.html").driver.find_element(By.CSS_SELECTOR, ".md-content").text
    steps = int(re.search(r"All (\d+) steps came as expected", text)[1])
    assert steps >= 14 and f"\n{steps}. " in text and "redlock acquire" in text
    assert re.search(r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC", text)


def test_the_figures_page_says_when_and_where_it_was_measured(browser, address):
    driver = browser.open(address + "figures.html").driver
    text = driver.find_element(By.CSS_SELECTOR, ".md-content").text
    assert re.search(r"Measured on \d{4}-\d\d-\d\d \d\d:\d\d UTC, on a machine with \d+ cores \(.+\)", text)
    for image in driver.find_elements(By.CSS_SELECTOR, "img.chart"):
        drawn = re.findall(r"libredlock ([\d,.]*\d)", image.get_attribute("alt"))
        assert drawn and [figure for figure in drawn if figure not in text] == []  # the table has them, too


def test_the_pictures_show_violations(visits):
    for mutant in "blind-delete", "clock-at-reply", "no-guard":
        svg = (SITE / f"pictures/{mutant}.svg").read_text()
        assert svg.count('class="violation"') == 1 and "overlap: " in svg and 'class="process"' in svg
        drawn = (SITE / f"pictures/{mutant}-drawn.svg").read_text()
        assert drawn.count('class="overlap"') == 1 and drawn.count(">client ") >= 2 and drawn.count(">node ") == 3


def test_the_reference_of_python_has_every_method_and_option(visits):
    ids = set(visits["api/python.html"].ids)
    classes = [each for name in ("_client", "_thread_lock")
               for each in ast.parse((ROOT / f"python/libredlock/{name}.py").read_text()).body]
    methods = [f"{each.name}.{method.name}" for each in classes if isinstance(each, ast.ClassDef)
               for method in each.body if isinstance(method, ast.FunctionDef) and method.name[0] != "_"]
    assert {"Client.lock", "Lock.acquire", "Hold.extend"} <= set(methods)
    wanted = {f"{module}.{method}" for module in ("libredlock", "libredlock.aio") for method in methods}
    assert wanted | {"libredlock.types.LockOptions.ttl", "libredlock.types.ClientOptions.max_ttl"} <= ids
