"""A headless Chromium, driven by the DevTools protocol over two pipes: no library is needed."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium():
    """Path of the browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass(frozen=True)
class Look:
    """What was seen of a page: its address, requests beyond it, complaints, widths and text."""

    requests: list
    complaints: list
    inner_width: int
    scroll_width: int
    background: str
    text: str


class Chromium:
    """One browser; `look` opens a page as a device of some width would."""

    def __init__(self, path):
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()

        def pipes():
            # The protocol wants commands at 3 and answers at 4; both may be taken, so move them away first.
            read, write = os.dup2(commands, 103), os.dup2(answers, 104)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(
            [
                path,
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
                *("--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars"),
                f"--user-data-dir={self._folder.name}",
                "about:blank",
            ],
            preexec_fn=pipes,  # noqa: PLW1509 - no thread runs yet
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._events, self._number = b"", [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._commands)
        os.close(self._answers)
        self._folder.cleanup()

    def ask(self, page: Path, expression: str, width: int = 1400):
        """The value of an expression, in the page after it was loaded."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable", session=session)
        device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 800}
        self._call("Emulation.setDeviceMetricsOverride", session=session, **device)
        self._events.clear()
        self._call("Page.navigate", session=session, url=page.resolve().as_uri())
        self._wait_for("Page.loadEventFired")
        asked = {"expression": expression, "returnByValue": True}
        answer = self._call("Runtime.evaluate", session=session, **asked)
        self._call("Target.closeTarget", targetId=target)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"]["value"]

    def look(self, page: Path, width: int, dark: bool = False, media: str = "screen") -> Look:
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

        def call(method, **parameters):
            return self._call(method, session=session, **parameters)

        for domain in ("Page", "Network", "Log", "Runtime"):
            call(f"{domain}.enable")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        call("Emulation.setEmulatedMedia", media=media, features=scheme)
        call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 800,
        )
        self._events.clear()
        url = page.resolve().as_uri()
        call("Page.navigate", url=url)
        self._wait_for("Page.loadEventFired")
        time.sleep(0.2)
        call("Runtime.evaluate", expression="1")  # whatever was under way has been told by now

        def value(expression):
            return call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]["value"]

        requests = [e["params"]["request"]["url"] for e in self._told("Network.requestWillBeSent")]
        complaints = [e["params"]["entry"]["text"] for e in self._told("Log.entryAdded")]
        complaints += [
            str(e["params"]) for e in self._told("Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        ]
        seen = Look(
            requests=[request for request in requests if request != url],
            complaints=complaints,
            inner_width=value("window.innerWidth"),
            scroll_width=value("document.documentElement.scrollWidth"),
            background=value("getComputedStyle(document.body).backgroundColor"),
            text=value("document.body.innerText"),
        )
        self._call("Target.closeTarget", targetId=target)
        return seen

    def _told(self, *methods):
        return [event for event in self._events if event["method"] in methods]

    def _call(self, method, session=None, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._events.append(answer)

    def _wait_for(self, method):
        while not self._told(method):
            self._events.append(self._read())

    def _read(self):
        while b"\0" not in self._buffer:
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium has gone away.")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
