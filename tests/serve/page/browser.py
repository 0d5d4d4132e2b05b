"""A headless Chromium, spoken to over a pipe: it needs the browser alone, no driver and no port."""
import base64
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-default-apps",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--remote-debugging-pipe")


def find_chromium():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One process with one page at a time. What the page logged and asked for is collected until drain()."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self.out = os.pipe()
        self.into, answers = os.pipe()

        def place():  # Chromium reads commands from 3 and answers on 4; neither may be overwritten by the other
            kept = os.dup(answers)
            os.dup2(commands, 3)
            os.dup2(kept, 4)

        self.process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"],
                                        preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.session = 0, None
        self.answers, self.problems, self.requests = queue.Queue(), [], []
        threading.Thread(target=self._listen, daemon=True).start()

    def close(self):
        os.close(self.out)  # the browser ends when nobody can command it any more
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def _listen(self):
        rest = b""
        while chunk := os.read(self.into, 1 << 16):
            *messages, rest = (rest + chunk).split(b"\0")
            for message in map(json.loads, messages):
                if "id" in message:
                    self.answers.put(message)
                else:
                    self._note(message.get("method"), message.get("params", {}))
        self.answers.put(None)

    def _note(self, method, params):
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(("exception", details.get("exception", {}).get("description", details["text"])))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(("console", json.dumps(params["args"])))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            entry = params["entry"]
            self.problems.append((entry["source"], f"{entry['text']} {entry.get('url', '')}"))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(("dialog", params["message"]))

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.answers.get(timeout=60)
            if answer is None:
                raise RuntimeError("the browser ended")
            if answer["id"] == self.number:
                break
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url, width=1280, height=800, dark=False, touch=False):
        """A page with storage of its own."""
        self.session = None
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.problems, self.requests = [], []
        self.go(url)
        return context

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def shut(self, context):
        self.session = None
        self.call("Target.disposeBrowserContext", browserContextId=context)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, expression, seconds=30):
        """Until the expression is true. The limit is for a page that never gets there."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.05)
        raise AssertionError(f"after {seconds} s still not: {expression}\n{self.evaluate('document.body.innerText')}")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, code=0):
        for kind in ("keyDown", "keyUp"):
            extra = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra)

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, whole=False):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"])
