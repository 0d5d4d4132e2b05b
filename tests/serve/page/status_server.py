"""Serves the page and a scripted status, as the real server does, and can die, hang, refuse and lie."""
import http.server
import json
import math
import socket
import threading
import time

START = int(time.time())  # of the script: what has happened stays where it was
ORIGINAL = "original"
SMALL = "layer1.0=shrink50,layer2.1=skip"
SMALLEST = "layer1.0=shrink25,layer2.1=skip,layer3.0=low4@exit2?0.9"
POOL = [(ORIGINAL, 0.0100, 0.931, True), ("layer2.1=skip", 0.0091, 0.927, True), ("layer1.0=shrink50", 0.0086, 0.921, False),
        (SMALL, 0.0074, 0.912, True), ("layer2.0=low8,layer3.1=skip", 0.0068, 0.899, False),
        ("layer1.0=shrink25,layer2.1=skip", 0.0057, 0.881, False), (SMALLEST, 0.0041, 0.862, True)]


def pool(active):
    return [{"variant": name, "latency_s": latency, "accuracy": accuracy, "warm": warm, "active": name == active}
            for name, latency, accuracy, warm in POOL]


def wave(second, period, phase=0.0):
    return math.sin(2 * math.pi * second / period + phase)


def history(now, seconds=120, busy_from=50, busy_to=95):
    """A neighbour arrives and leaves; the variant follows."""
    entries = []
    for k in range(seconds):
        busy = busy_from <= k < busy_to
        late = k in (busy_from, busy_from + 1)
        variant = SMALL if busy_from + 2 <= k < busy_to + 4 else ORIGINAL
        p50 = (0.0085 if busy else 0.0066) + 0.0004 * wave(k, 13) + (0.005 if late else 0)
        load = (0.66 if busy else 0.24) + 0.05 * wave(k, 17) + 0.03 * wave(k, 5, 1)
        p95 = p50 * 1.45 + 0.0006 * wave(k, 7) + (0.002 if late else 0)
        entries.append({"time": now - seconds + 1 + k, "p50_s": p50, "p95_s": p95, "rate": 98 + 9 * wave(k, 23) + 4 * wave(k, 3),
                        "load": load, "forecast": min(1, max(0, load + 0.06 * wave(k, 17, 1.2))), "variant": variant})
    return entries


def model(name="resnet20", now=None, active=ORIGINAL, **changes):
    now = START if now is None else now
    _, latency, accuracy, _ = next(entry for entry in POOL if entry[0] == active)
    result = {
        "name": name, "version": "1", "ready": True, "budget_s": 0.015, "variant": active, "accuracy": accuracy,
        "estimated_s": latency * 1.12, "correction": 1.12, "requests_total": 11834, "refused_total": 0, "late_total": 27,
        "rate_per_s": 98.1, "p50_s": 0.0069, "p95_s": 0.0104, "p99_s": 0.0131, "miss_share": 0.0023, "queue": 2,
        "queue_limit": 256, "pool": pool(active),
        "switches": [{"time": now - 66, "from": ORIGINAL, "to": SMALL,
                      "reason": "predicted 16.1 ms over 15 ms: others use 52 % of the cores"},
                     {"time": now - 20, "from": SMALL, "to": ORIGINAL,
                      "reason": "predicted 11.2 ms fits in 15 ms again: others use 4 % of the cores"}],
        "history": history(now)}
    return result | changes


def adaptation(now=None, **changes):
    """Fog came, the model learnt, and fog went."""
    now = START if now is None else now
    points = []
    for k in range(60):
        foggy = 20 <= k < 48
        original = (0.61 if foggy else 0.88) + 0.02 * wave(k, 9)
        points.append({"time": now - 10 * (60 - k), "domain": 3 if foggy else 0, "original": original,
                       "estimate": original + (0.14 if 26 <= k < 48 else 0)})
    events = [{"time": now - 400, "kind": "alarm", "domain": 0, "reason": "contrast, since 20 images before", "seconds": 0},
              {"time": now - 380, "kind": "domain", "domain": 3, "reason": "0.82 deviations from the nearest", "seconds": 0},
              {"time": now - 370, "kind": "rejected", "domain": 3, "reason": "gains 0.4 points, expected 2 or more", "seconds": 0.3},
              {"time": now - 340, "kind": "adapted", "domain": 3, "reason": "gains 13.8 points on 40 images", "estimate": 0.75, "seconds": 2.4},
              {"time": now - 120, "kind": "returned", "domain": 0, "reason": "the source: the model as it came", "seconds": 0}]
    result = {"method": "tent", "state": "following", "net": "tent after 1200 frames", "domain": 3, "estimate": 0.752,
              "source_accuracy": 0.887, "seen_total": 6040, "bad_total": 12, "passed_total": 81000, "domains_total": 2, "adapted_total": 1,
              "rejected_total": 1, "rolled_back_total": 0, "returned_total": 1, "failed_total": 0, "cpu_seconds_total": 81.5,
              "events": events, "points": points}
    return result | changes


def turn(**changes):
    """The model may learn now, of several that share the time for it."""
    result = {"importance": 2, "minimum_accuracy": 0.7, "learns": True, "why": "learns: 61.2 % to 74.1 % expected after 12.0 s",
              "cores": 0.5, "start_s": 0, "end_s": 12, "before": 0.612, "after": 0.741}
    return result | changes


def status(*models, **changes):
    device = {"load": 0.24, "forecast": 0.29, "cpu_others": 0.08, "cpu": 0.41, "memory": 0.37, "pressure": 0.012,
              "temperature_c": 51.5, "power_w": None}
    result = {"time": START, "uptime_s": 4211.5, "version": "0.1.0", "policy": "forecast",
              "device": device | changes.pop("device", {}), "models": list(models)}
    return result | changes


class StatusServer:
    """`answer` makes the status of each request; what else it should do is set while it runs."""

    def __init__(self, page):
        self.page, self.port, self.server = page, 0, None
        self.reset()
        self.start()

    def reset(self):
        self.answer, self.token, self.code, self.raw, self.delay = (lambda: status(model())), None, 200, None, 0.0
        self.lock, self.open, self.most, self.count, self.tokens, self.strays = threading.Lock(), 0, 0, 0, [], []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def start(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.serve(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        """Connections are refused from now on."""
        self.server.shutdown()
        self.server.socket.shutdown(socket.SHUT_RDWR)
        self.server.server_close()

    def serve(self, request):
        if request.path == "/":
            return self.send(request, 200, "text/html; charset=utf-8", self.page.read_bytes())
        if request.path != "/v2/limber/status":
            self.strays.append(request.path)
            return self.send(request, 404, "text/plain", b"")
        with self.lock:
            self.open += 1
            self.count += 1
            self.most = max(self.most, self.open)
        try:
            time.sleep(self.delay)
            self.send_status(request)
        finally:
            with self.lock:
                self.open -= 1

    def send_status(self, request):
        given = request.headers.get("Authorization")
        self.tokens.append(given)
        if self.token is not None and given != f"Bearer {self.token}":
            return self.send(request, 401, "application/json", b'{"error": "a token is needed"}')
        body = self.raw if self.raw is not None else json.dumps(self.answer()).encode()
        self.send(request, self.code, "application/json", body)

    @staticmethod
    def send(request, code, kind, body):
        try:
            request.send_response(code)
            request.send_header("Content-Type", kind)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except OSError:  # the page gave up waiting
            pass
