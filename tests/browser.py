"""A browser for tests: Chromium without a window, driven through its own pipe (the DevTools protocol), without a driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_NAMES = ("chromium", "chromium-browser", "google-chrome") if hasattr(os, "posix_spawn") else ()
CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page in one browser. `messages` gathers what it wrote to the console, `requests` all addresses it asked for."""

    def __init__(self) -> None:
        import fcntl  # not on Windows

        assert CHROMIUM is not None
        self._folder = tempfile.TemporaryDirectory(prefix="corecut-browser-", ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        options += ["--remote-debugging-pipe", "--no-first-run", "--disable-extensions", f"--user-data-dir={self._folder.name}"]
        # Without updates and lists of its own: what is asked for is then what a page asks for.
        options += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]

        # The browser reads from 3 and writes to 4, which may be in use here: from copies with higher numbers.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (to_browser, from_browser)]
        actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, out, os.devnull, os.O_WRONLY, 0) for out in (1, 2)]
        actions += [(os.POSIX_SPAWN_DUP2, end, number) for end, number in zip(ends, (3, 4), strict=True)]
        self._process = os.posix_spawn(CHROMIUM, [CHROMIUM, *options, "about:blank"], os.environ, file_actions=actions)
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        self._buffer, self._number = b"", 0
        self.messages: list[str] = []
        self.requests: list[str] = []
        targets = self._send("Target.getTargets")["targetInfos"]
        page = next(one for one in targets if one["type"] == "page")
        self._session: str | None = None
        self._session = self._send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        os.kill(self._process, signal.SIGTERM)
        os.waitpid(self._process, 0)
        os.close(self._write)
        os.close(self._read)
        self._folder.cleanup()

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._read, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        method, told = found.get("method"), found.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.messages.append(str([one.get("value", one.get("description")) for one in told["args"]]))
        elif method == "Runtime.exceptionThrown":
            self.messages.append(str(told["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.messages.append(str(told["entry"]))
        elif method == "Page.javascriptDialogOpening":
            self.messages.append(f"dialog: {told['message']}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        return found

    def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        text = memoryview(json.dumps(message).encode() + b"\0")
        while text:
            text = text[os.write(self._write, text) :]
        while True:
            found = self._receive()
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def open(self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False, paper: bool = False) -> float:
        """Open a file in a window of a size, or on a sheet of paper; return the seconds until the page was ready."""
        self._send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._send("Emulation.setEmulatedMedia", media="print" if paper else "", features=[scheme])
        self._send("Page.navigate", url=file.resolve().as_uri())
        for _ in range(400):
            if self.run("document.readyState === 'complete' && location.protocol === 'file:'"):
                break
            time.sleep(0.05)
        return float(self.run("performance.getEntriesByType('navigation')[0].loadEventEnd")) / 1000

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        found = self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move, press or release the mouse."""
        self._send("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Click at a place of the window."""
        self.mouse("Moved", x, y)
        self.mouse("Pressed", x, y, button="left", clickCount=1)
        self.mouse("Released", x, y, button="left", clickCount=1)

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self._send("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self._send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self, *, whole: bool = False) -> bytes:
        """Return a picture of the window, or of the whole page, as PNG."""
        return base64.b64decode(self._send("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def pdf(self) -> bytes:
        """Return the page as it would be printed."""
        return base64.b64decode(self._send("Page.printToPDF")["data"])
