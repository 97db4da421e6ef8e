"""The built site on a server of its own, and a real browser that has opened each of its pages once."""

import json
import os
import threading
import zlib
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

SITE = Path(os.environ.get("REDLOCK_SITE", Path(__file__).resolve().parents[2] / "build/site"))
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"]
DESKTOP = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}

LOOK = """
  const all = (selector, what) => Array.from(document.querySelectorAll(selector), what);
  return {
    links: all('a[href]', a => a.href),
    navigation: all('.md-nav--primary a[href]', a => a.href),
    ids: all('[id]', e => e.id),
    images: all('img', i => [i.src, i.complete && i.width > 0 ? i.naturalWidth : 0]),
  };
"""
MEASURE = """
  const root = document.documentElement, text = document.querySelector('.md-content p, .md-content pre');
  return {
    window: root.clientWidth,
    body: Math.max(root.scrollWidth, document.body.scrollWidth),
    font: text ? parseFloat(getComputedStyle(text).fontSize) : 16,
  };
"""


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@dataclass
class Visit:
    """What the browser has seen of a page."""

    links: list
    navigation: list
    ids: list
    images: list
    phone: dict


@pytest.fixture(scope="session")
def address():
    handler = partial(QuietHandler, directory=SITE)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Browser:
    def __init__(self, driver):
        self.driver = driver
        self.console, self.requests = [], []

    def window(self, metrics):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, url):
        self.driver.get(url)
        return self

    def visit(self, url):
        self.window(DESKTOP)
        self.open(url)
        seen = self.driver.execute_script(LOOK)
        self.window(PHONE)
        phone = self.driver.execute_script(MEASURE)
        self.listen()
        return Visit(**seen, phone=phone)

    def listen(self):
        """Keeps what the console says and what was asked of which server."""
        self.console += [entry["message"] for entry in self.driver.get_log("browser")
                         if entry["level"] in ("SEVERE", "WARNING")]
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self.requests.append(message["params"]["request"]["url"])


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.command_executor.client_config.timeout = 600  # else two minutes for each command, on a machine that is busy
    driver.set_page_load_timeout(600)
    driver.set_script_timeout(600)
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def visits(browser, address):
    """Each page by its name; of those of the C functions and of those that show a file, which are made alike, a third
    if a text chooses it."""
    sample = os.environ.get("REDLOCK_SAMPLE")
    names = [str(path.relative_to(SITE)) for path in sorted(SITE.rglob("*.html"))]
    return {name: browser.visit(address + name) for name in names
            if not (sample and name.startswith(("api/c/", "source/")) and zlib.crc32((sample + name).encode()) % 3)}
