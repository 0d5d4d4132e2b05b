#!/usr/bin/env python3
"""Opens the live page in a real browser and checks what it shows for scripted answers of the server.

usage: page_test.py [--page web/live.html] [--pictures FOLDER] [unittest arguments]
Exit code 77: there is no Chromium here. --pictures writes what the page looks like, for people to look at.
"""
import argparse
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from browser import Browser, find_chromium  # noqa: E402
from status_server import (ORIGINAL, POOL, SMALL, SMALLEST, START, StatusServer, adaptation, history, model,  # noqa: E402
                           status, turn)

ROOT = pathlib.Path(__file__).resolve().parents[3]
MOST_BYTES = 48 * 1024
SKIPPED = 77
HOSTILE = ("<img src=x onerror=window.hacked=1>", "</script><script>window.hacked=2</script>", "\"><svg onload=window.hacked=3>",
           "javascript:window.hacked=4", "${window.hacked=5}", "&lt;b&gt;", "__proto__", "\u202eevil\u202c", "a\0b\n<b>")
# Texts that are too hard to read, by the rule of the Web Content Accessibility Guidelines, level AA.
CONTRAST = """(() => {
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(v => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = node => {
    while (node && getComputedStyle(node).backgroundColor === 'rgba(0, 0, 0, 0)') node = node.parentElement;
    return getComputedStyle(node ?? document.documentElement).backgroundColor;
  };
  const written = node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  const lack = node => {
    const style = getComputedStyle(node), a = light(style.color), b = light(ground(node)), size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.6 && +style.fontWeight >= 700;
    return (large ? 3 : 4.5) - (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  return [...document.querySelectorAll('body *')]
    .filter(node => node.checkVisibility() && !node.closest('svg, script') && written(node) && lack(node) > 0)
    .map(node => node.textContent.slice(0, 40));
})()"""
page, pictures = ROOT / "web/live.html", None


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\0", "\\0") + "'"


class LivePage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser, cls.server = Browser(find_chromium()), StatusServer(page)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.server.stop()

    def setUp(self):
        self.server.reset()
        self.context, self.expected = None, ()

    def tearDown(self):
        if self.context is None:
            return
        self.assertEqual(self.js("typeof window.hacked"), "undefined")
        self.browser.shut(self.context)
        problems = [what for what in self.browser.problems if not any(words in what[1] for words in self.expected)]
        self.assertEqual(problems, [])
        outside = [url for url in self.browser.requests if not url.startswith((self.server.url, "data:,"))]
        self.assertEqual(outside, [])
        self.assertEqual(self.server.strays, [])

    # --- what tests are written with -----------------------------------------------------------------
    def open(self, answer=None, until="live", **screen):
        if answer is not None:
            self.server.answer = answer
        self.context = self.browser.open(self.server.url, **screen)
        self.wait_link(until)

    def js(self, expression):
        return self.browser.evaluate(expression)

    def wait(self, expression):
        return self.browser.wait(expression)

    def pause(self, milliseconds):
        self.js(f"new Promise(done => setTimeout(done, {milliseconds}))")

    def wait_link(self, words):
        self.wait(f"document.getElementById('link').textContent === {quoted(words)}")

    def text(self, selector):
        return self.js(f"document.querySelector({quoted(selector)})?.innerText ?? null")

    def texts(self, selector):
        return self.js(f"[...document.querySelectorAll({quoted(selector)})].map(node => node.innerText)")

    def count(self, selector):
        return self.js(f"document.querySelectorAll({quoted(selector)}).length")

    def field(self, name):
        return self.text(f"[data-field={name}]")

    def hidden(self, name):
        return self.js(f"!document.getElementById({quoted(name)}).checkVisibility()")

    def path(self, chart, style):
        """The points of a line in a chart, as lists that belong together."""
        d = self.js(f"document.querySelector('[data-chart={chart}] .plot path.{style}').getAttribute('d')")
        return [[tuple(map(float, point.split())) for point in re.split("L", part.replace("h0", ""))]
                for part in d.split("M") if part]

    def keep(self, name):
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            (pictures / f"{name}.png").write_bytes(self.browser.screenshot(whole=True))


class Contents(LivePage):
    def test_is_one_small_file(self):
        self.assertLess(page.stat().st_size, MOST_BYTES)

    def test_says_how_the_model_does(self):
        self.open()
        self.assertEqual(self.text(".model h2"), "resnet20")
        self.assertEqual(self.text(".model .state"), "within the budget")
        told = {"p95": "10.4 ms", "p50": "6.9 ms", "rate": "98.1 /s", "missed": "0.2 %", "refused": "0", "queue": "2",
                "variant": ORIGINAL, "exit": "none"}
        self.assertEqual({name: self.field(name) for name in told}, told)
        everything = self.text("main")
        for words in ("budget 15 ms", "p99 13.1 ms", "11,834 so far", "27 too late so far", "of at most 256", "93.1 %",
                      "11.2 ms", "× 1.12"):
            self.assertIn(words, everything)
        self.assertEqual(self.text("#about"), "version 0.1.0 · policy forecast · up for 70 min")

    def test_says_how_the_machine_does_and_leaves_out_what_it_has_not(self):
        self.open()
        told = {"load": "24 %", "forecast": "29 %", "cpu_others": "8 %", "cpu": "41 %", "memory": "37 %", "pressure": "1.2 %",
                "temperature_c": "52 °C"}
        self.assertEqual({name: self.field(name) for name in told}, told)
        self.assertEqual(self.field("power_w"), "")
        self.server.answer = lambda: status(model(), device={"power_w": 7.25, "temperature_c": None})
        self.wait("document.querySelector('[data-field=power_w]').innerText === '7.3 W'")
        self.assertFalse(self.js("document.querySelector('[data-field=temperature_c]').checkVisibility()"))

    def test_marks_who_is_over_the_budget(self):
        self.open(lambda: status(model(p95_s=0.0171)))
        self.assertEqual(self.text(".model .state"), "over the budget")
        self.assertEqual(self.count(".tiles .over [data-field=p95]"), 1)

    def test_names_variant_exit_and_what_they_cost(self):
        self.open(lambda: status(model(active=SMALLEST)))
        self.assertEqual(self.field("variant"), SMALLEST)
        self.assertEqual(self.field("exit"), "exit2, earlier when 90 % sure")
        self.assertIn("6.9 points below the best", self.text(".active"))
        self.server.answer = lambda: status(model(variant="a=b?0.85"))
        self.wait("document.querySelector('[data-field=exit]').innerText === 'any, when 85 % sure'")
        self.server.answer = lambda: status(model(variant="a=b@early"))
        self.wait("document.querySelector('[data-field=exit]').innerText === 'early'")

    def test_without_history_it_says_so(self):
        empty = dict.fromkeys(("p50_s", "p95_s", "p99_s", "miss_share", "accuracy", "estimated_s", "correction", "budget_s"))
        self.open(lambda: status(model(ready=False, history=[], pool=[], switches=[], **empty)))
        self.assertEqual(self.text(".model .state"), "warming up")
        drawn = self.js("[...document.querySelectorAll('.plot text')].map(node => node.textContent)")
        self.assertEqual(drawn.count("nothing in the last two minutes"), 3)
        self.assertEqual(self.field("p95"), "–")
        self.assertIn("No variant has been measured.", self.text("[data-chart=pool]"))
        self.assertIn("None yet", self.text(".switches"))

    def test_without_models_it_says_so(self):
        self.open(lambda: status())
        self.assertEqual(self.text("#models"), "No model is loaded.")
        self.server.answer = lambda: status(model())
        self.wait("document.querySelectorAll('.model').length === 1")
        self.assertNotIn("No model", self.text("#models"))


class Charts(LivePage):
    def test_latency_stands_against_the_budget(self):
        self.open()
        budget = self.js("+document.querySelector('.plot path.reference').getAttribute('d').match(/ ([\\d.]+)H/)[1]")
        zone = self.js("(r => +r.getAttribute('y') + +r.getAttribute('height'))(document.querySelector('.over-zone'))")
        self.assertAlmostEqual(zone, budget, places=3)
        [p95], [p50] = self.path("latency", "s1"), self.path("latency", "s0")
        told = history(START)
        self.assertEqual((len(p95), len(p50)), (120, 120))
        self.assertEqual([y < budget for _, y in p95], [entry["p95_s"] > 0.015 for entry in told])
        self.assertTrue(all(upper[1] < lower[1] for upper, lower in zip(p95, p50)))
        self.assertEqual([x for x, _ in p95], sorted(x for x, _ in p95))

    def test_seconds_without_requests_are_gaps(self):
        told = history(START)
        for k in (*range(40, 60), 80, 82):
            told[k] |= {"p50_s": None, "p95_s": None}
        self.open(lambda: status(model(history=told)))
        self.assertEqual([len(part) for part in self.path("latency", "s1")], [40, 58])
        self.assertEqual([len(part) for part in self.path("rate", "s0")], [120])

    def test_a_spike_does_not_flatten_the_rest(self):
        told = history(START)
        told[70]["p95_s"] = 30.0
        self.open(lambda: status(model(history=told)))
        [p95] = self.path("latency", "s1")
        self.assertGreater(p95[10][1] - p95[70][1], 20)
        self.assertGreater(abs(p95[10][1] - p95[60][1]), 2)

    def test_load_forecast_and_switches_are_drawn(self):
        self.open()
        self.assertEqual([len(part) for part in self.path("load", "s2")], [120])
        self.assertEqual([len(part) for part in self.path("load", "s3")], [120])
        for chart in ("latency", "load", "rate"):
            self.assertEqual(self.count(f"[data-chart={chart}] .plot .turn"), 2)
        strip = self.js("[...document.querySelectorAll('.plot rect.f0')].map(r => +r.getAttribute('opacity'))")
        self.assertEqual(len(strip), 3)
        self.assertEqual(strip[0], strip[2])
        self.assertLess(strip[1], strip[0])

    def test_the_pool_is_drawn_and_listed(self):
        self.open()
        warm = sum(entry[3] for entry in POOL)
        dots = "[data-chart=pool] .plot circle"
        self.assertEqual([self.count(f"{dots}.{kind}") for kind in ("f0", "cold", "ring")], [warm, len(POOL) - warm, 1])
        where = "c => [+c.getAttribute('cx'), +c.getAttribute('cy')].join()"
        ring = self.js(f"({where})(document.querySelector('{dots}.ring'))")
        hinted = "c => c.textContent === 'original: 10.0 ms, 93.1 %, active'"
        active = self.js(f"[...document.querySelectorAll('{dots}')].filter({hinted}).map({where})")
        self.assertEqual(active, [ring])
        self.assertFalse(self.js("document.querySelector('[data-chart=pool] table').checkVisibility()"))
        self.js("document.querySelector('summary').focus()")
        self.browser.press("Enter", 13)
        self.wait("document.querySelector('details').open")
        rows = self.js("[...document.querySelectorAll('tbody tr')].map(r => [...r.cells].map(c => c.innerText))")
        self.assertEqual(rows[0], [ORIGINAL, "10.0 ms", "93.1 %", "active"])
        self.assertEqual(rows[-1], [SMALLEST, "4.1 ms", "86.2 %", "warm"])
        self.assertEqual(len(rows), len(POOL))

    def test_earlier_values_can_be_read_by_keyboard(self):
        self.open()
        self.js("document.querySelector('[data-chart=latency] .plot').focus()")
        for _ in range(7):
            self.browser.press("PageDown", 34)
        self.browser.press("ArrowRight", 39)
        entry = history(START)[-1 - 69]
        self.assertEqual(self.text("[data-chart=latency] figcaption .soft"), "69 s ago")
        self.assertEqual(self.text("[data-chart=load] figcaption .soft"), "69 s ago")
        self.assertIn(f"p95 {entry['p95_s'] * 1e3:.1f} ms", self.text("[data-chart=latency] .legend").replace("\n", " "))
        told = self.js("document.activeElement.getAttribute('aria-valuetext')")
        self.assertTrue(told.startswith(f"69 s ago: p50 {entry['p50_s'] * 1e3:.1f} ms, p95 "), told)
        self.browser.press("Escape", 27)
        self.assertEqual(self.text("[data-chart=latency] figcaption .soft"), "now")
        self.assertEqual(self.js("document.activeElement.getAttribute('aria-valuetext')"), "now")

    def test_earlier_values_can_be_read_by_pointer(self):
        self.open()
        place = "document.querySelector('[data-chart=latency] .plot').getBoundingClientRect()"
        box = self.js(f"(b => [b.left, b.top, b.width, b.height])({place})")
        self.browser.move(box[0] + box[2] / 2, box[1] + box[3] / 2)
        self.wait("/^\\d+ s ago$/.test(document.querySelector('[data-chart=latency] figcaption .soft').innerText)")
        self.assertEqual(self.count("[data-chart=rate] .plot .cursor"), 1)
        self.assertEqual(self.text("[data-chart=latency] .legend code"), SMALL)
        self.browser.move(1, 1)
        self.wait("document.querySelector('[data-chart=latency] figcaption .soft').innerText === 'now'")


class Changes(LivePage):
    def test_a_switch_is_listed_and_announced(self):
        first = {"time": START - 66, "from": ORIGINAL, "to": SMALL, "reason": "others use 52 % of the cores"}
        self.open(lambda: status(model(active=SMALL, p95_s=0.016, switches=[first])))
        self.assertEqual(self.text(".model .state"), "over the budget")
        self.assertEqual(self.text("#said"), "")
        self.assertEqual(self.count(".switches .new"), 0)
        second = {"time": START - 1, "from": SMALL, "to": SMALLEST, "reason": "predicted 16.1 ms over 15 ms"}
        self.server.answer = lambda: status(model(active=SMALLEST, p95_s=0.009, switches=[first, second]))
        self.wait("document.querySelectorAll('.switches li').length === 2")
        latest, before = self.texts(".switches li")
        self.assertIn("predicted 16.1 ms over 15 ms", latest)
        self.assertIn(f"{SMALL} → {SMALLEST}", latest)
        self.assertIn("others use 52 % of the cores", before)
        self.assertRegex(latest, r"^\d\d:\d\d:\d\d ")
        self.assertEqual(self.js("document.querySelector('.switches time').dateTime.slice(-1)"), "Z")
        self.assertEqual(self.js("document.getElementById('said').textContent"),
                         f"resnet20 switched to {SMALLEST}: predicted 16.1 ms over 15 ms")
        self.assertEqual(self.js("document.getElementById('said').getAttribute('aria-live')"), "polite")
        self.assertEqual(self.count(".switches .new"), 1)
        self.assertEqual(self.field("variant"), SMALLEST)
        self.assertEqual(self.text(".model .state"), "within the budget")

    def test_several_models_can_be_chosen_from(self):
        self.open(lambda: status(model("first"), model("second", budget_s=0.03), model("third")))
        self.assertEqual(self.texts(".model h2"), ["first", "second", "third"])
        self.assertFalse(self.hidden("pick"))
        self.js("document.getElementById('model').focus()")
        for _ in range(2):
            self.browser.press("ArrowDown", 40)
        shown = "[...document.querySelectorAll('.model h2')].filter(n => n.checkVisibility()).map(n => n.innerText).join()"
        self.wait(f"{shown} === 'second'")
        self.assertIn("#second", self.js("location.href"))
        self.browser.go(self.js("location.href"))
        self.js("location.reload()")
        self.wait(f"document.readyState === 'complete' && {shown} === 'second'")
        self.server.answer = lambda: status(model("third"), model("first"))
        self.wait(f"{shown} === 'third,first'")
        self.server.answer = lambda: status(model("first"))
        self.wait(f"{shown} === 'first'")
        self.assertTrue(self.hidden("pick"))

    def test_two_versions_of_a_model_are_two_cards(self):
        self.open(lambda: status(model("m", version="1"), model("m", version="2", p50_s=0.001)))
        self.assertEqual(self.texts(".model [data-field=p50]"), ["6.9 ms", "1.0 ms"])


class Adaptation(LivePage):
    def test_says_whose_turn_it_is_to_learn(self):
        self.open(lambda: status(model("shares", adaptation=adaptation(), turn=turn()), model("alone", adaptation=adaptation())))
        shown = self.js("[...document.querySelectorAll('[data-field=turn]')].map(node => [node.checkVisibility(), node.textContent])")
        self.assertEqual(shown, [[True, "learns: 61.2 % to 74.1 % expected after 12.0 s · 0.5 cores · importance 2 · at least 70 % right"],
                                 [False, ""]])

    def test_is_shown_where_a_model_is_followed(self):
        self.open(lambda: status(model("followed", adaptation=adaptation()), model("left alone")))
        self.assertEqual(self.js("[...document.querySelectorAll('.follow')].map(node => node.checkVisibility())"), [True, False])
        told = {"domain": "no. 3", "right": "75 %", "adapted": "1", "rejected": "1", "rolled-back": "0", "seen": "6,040",
                "net": "tent after 1200 frames"}
        self.assertEqual({name: self.field(name) for name in told}, told)
        everything = self.text(".follow")
        for words in ("tent · following", "2 changes so far", "89 % on the source", "and 1 back to it", "12 bad"):
            self.assertIn(words, everything)
        self.server.answer = lambda: status(model("followed", adaptation=adaptation(domain=0, estimate=None)), model("left alone"))
        self.wait("document.querySelector('[data-field=domain]').innerText === 'the source'")
        self.assertEqual(self.field("right"), "–")

    def test_estimates_and_domains_are_drawn(self):
        self.open(lambda: status(model(adaptation=adaptation())))
        [answers], [original] = self.path("follow", "s0"), self.path("follow", "s1")
        self.assertEqual((len(answers), len(original)), (60, 60))
        self.assertEqual([k for k in range(60) if answers[k][1] < original[k][1]], list(range(26, 48)))
        self.assertEqual([x for x, _ in answers], sorted(x for x, _ in answers))
        strip = self.js("[...document.querySelectorAll('[data-chart=follow] .plot rect')].map(r => [r.getAttribute('class'), "
                        "+r.getAttribute('x'), +r.getAttribute('width')])")
        self.assertEqual([kind for kind, _, _ in strip], ["f6", "f2", "f6"])
        self.assertAlmostEqual(strip[0][1] + strip[0][2], strip[1][1], places=3)
        self.assertAlmostEqual(strip[1][1], answers[20][0], delta=0.1)
        self.assertEqual(self.count("[data-chart=follow] .plot .turned"), 1)
        self.assertEqual(self.text("[data-chart=follow] figcaption span"), "the last 10 min")

    def test_events_are_listed_and_announced(self):
        before = adaptation()
        self.open(lambda: status(model(adaptation=before)))
        listed = self.texts(".events li")
        self.assertEqual(len(listed), 5)
        self.assertRegex(listed[0], r"^\d\d:\d\d:\d\d Back to what was learnt here, the source\s+the source: the model as it came$")
        self.assertRegex(listed[1], r"Adapted, no. 3, took 2 s\s+gains 13.8 points on 40 images$")
        self.assertEqual(self.count(".events .new"), 0)
        worse = {"time": START, "kind": "rolled back", "domain": 4, "reason": "2.1 points below the model as it came", "seconds": 0.2}
        self.server.answer = lambda: status(model(adaptation=before | {"events": [*before["events"], worse], "net": ""}))
        self.wait("document.querySelectorAll('.events .new').length === 1")
        self.assertEqual(self.js("document.getElementById('said').textContent"),
                         "resnet20, Taken back: 2.1 points below the model as it came")
        self.assertEqual(self.field("net"), "as it came")

    def test_before_anything_was_looked_at_it_says_so(self):
        self.open(lambda: status(model(adaptation=adaptation(state="looking at the images of the source", points=[], events=[]))))
        self.assertIn("tent · looking at the images of the source", self.text(".follow"))
        self.assertIn("no image was looked at yet", self.js("document.querySelector('[data-chart=follow] .plot').textContent"))
        self.assertIn("Nothing yet", self.text(".events"))


class Trouble(LivePage):
    def test_a_server_that_goes_and_comes_back(self):
        self.expected = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE")
        self.open()
        self.server.stop()
        try:
            self.wait_link("not connected")
            self.assertIn("has not answered since", self.text("#trouble"))
            self.assertIn("from before", self.text("#trouble"))
            self.assertEqual(self.count("#content.stale"), 1)
            self.assertEqual(self.field("p95"), "10.4 ms")
            # It asks less and less often.
            self.wait("/in [4-8] s/.test(document.getElementById('trouble').innerText)")
        finally:
            self.server.start()
        self.js("document.querySelector('#trouble button').focus()")
        self.browser.press("Enter", 13)
        self.wait_link("live")
        self.assertTrue(self.hidden("trouble"))
        self.assertEqual(self.count("#content.stale"), 0)
        asked = self.server.count
        self.server.answer = lambda: status(model(p95_s=0.0123))
        self.wait("document.querySelector('[data-field=p95]').innerText === '12.3 ms'")
        self.assertGreater(self.server.count, asked)

    def test_it_comes_back_by_itself(self):
        self.expected = ("ERR_CONNECTION", "ERR_EMPTY_RESPONSE")
        self.open()
        self.server.stop()
        try:
            self.wait_link("not connected")
        finally:
            self.server.start()
        self.wait_link("live")

    def test_a_server_that_hangs(self):
        self.open()
        self.server.delay = 8.0
        self.wait_link("not connected")
        self.server.delay = 0.0
        self.wait_link("live")

    def test_requests_never_overlap(self):
        self.server.delay = 1.2
        self.open(until="live")
        count = self.server.count
        for _ in range(5):
            self.js("dispatchEvent(new Event('online')); document.dispatchEvent(new Event('visibilitychange'))")
        while self.server.count < count + 3:
            self.pause(100)
        self.assertEqual(self.server.most, 1)

    def test_errors_are_told(self):
        self.expected = ("503",)
        self.open()
        self.server.code = 503
        self.wait("document.getElementById('trouble').innerText.includes('The server answered 503.')")
        self.server.code = 200
        for raw in (b"<html>a proxy's page</html>", b"null", b"[]", b'{"models": 3}', b""):
            self.wait_link("live")
            self.server.raw = raw
            self.wait("document.getElementById('trouble').innerText.includes('something else than its status')")
            self.server.raw = None
            self.js("document.querySelector('#trouble button').click()")
        self.wait_link("live")

    def test_asks_for_the_token(self):
        self.expected = ("401",)
        self.server.token = "s3cret"
        self.open(until="token needed")
        self.assertTrue(self.hidden("content"))
        self.assertEqual(self.js("document.activeElement.id"), "token")
        self.assertIn("only those who have its token", self.js("document.activeElement.labels[0].innerText"))
        self.assertTrue(self.hidden("refused"))
        asked = self.server.count
        self.browser.type("wröng token")
        self.browser.press("Enter", 13)
        self.wait("document.getElementById('refused').innerText.includes('only plain letters')")
        self.assertEqual(self.server.count, asked)
        self.js("document.getElementById('token').value = ''")
        self.browser.type("wrong")
        self.browser.press("Enter", 13)
        self.wait("document.getElementById('refused').innerText === 'The server did not accept this token.'")
        self.browser.type("s3cret")
        self.browser.press("Enter", 13)
        self.wait_link("live")
        self.assertTrue(self.hidden("ask"))
        self.assertEqual(self.server.tokens[:3], [None, "Bearer wrong", "Bearer s3cret"])
        self.assertEqual(self.js("document.getElementById('token').value"), "")
        self.browser.go(self.server.url)
        self.wait_link("live")
        self.assertNotIn("s3cret", self.js("location.href + document.cookie + document.documentElement.outerHTML"))

    def test_shows_nothing_any_more_when_the_token_is_taken_back(self):
        self.expected = ("401",)
        self.open()
        self.server.token = "new"
        self.wait_link("token needed")
        self.assertTrue(self.hidden("content"))
        self.assertTrue(self.hidden("trouble"))


class Strangers(LivePage):
    def test_texts_stay_texts(self):
        def evil(name):
            return model(name, version=name, variant=name, switches=[{"time": START, "from": name, "to": name, "reason": name}],
                         pool=[{"variant": name, "latency_s": 0.01, "accuracy": 0.9, "warm": True, "active": True}],
                         history=[entry | {"variant": name} for entry in history(START)],
                         turn=turn(why=name),
                         adaptation=adaptation(method=name, state=name, net=name,
                                               events=[{"time": START, "kind": name, "domain": 1, "reason": name, "seconds": 1}]))

        self.open(lambda: status(*map(evil, HOSTILE), version=HOSTILE[0], policy=HOSTILE[1]))
        places = "['h2', '[data-field=variant]', '.switches p', '.switches code', 'td', '[data-field=net]', '.events strong', '.events div']"
        shown = self.js("[...document.querySelectorAll('.model')].map(m => "
                        f"{places}.map(place => m.querySelector(place).textContent.replace(/^\\d\\d:\\d\\d:\\d\\d /, '')))")
        self.assertEqual(shown, [[name] * 8 for name in HOSTILE])
        self.assertIn(HOSTILE[0], self.text("#about"))
        self.assertEqual(self.count("img, script:not([type=module]), b b, p b, iframe, a, [onerror], [onload]"), 0)
        self.assertEqual(self.count("option"), len(HOSTILE) + 1)

    def test_markup_is_refused_by_the_browser(self):
        self.expected = ("TrustedHTML",)
        self.open()
        self.assertEqual(self.js("try { document.body.innerHTML = '<p>'; 'taken' } catch (error) { error.name }"), "TypeError")

    def test_nonsense_does_not_stop_it(self):
        odd = (None, "text", {"toString": 1}, [], [[]], True, -1, 1e14, 1e308, -1e308, 5e-324, 0)
        fields = ("name", "version", "ready", "budget_s", "variant", "accuracy", "estimated_s", "correction", "requests_total",
                  "rate_per_s", "p50_s", "p95_s", "queue", "queue_limit", "pool", "switches", "history", "adaptation")
        followed = tuple(adaptation())
        made = []
        for k, value in enumerate(odd):
            entry = {name: value for name in ("time", "p50_s", "p95_s", "rate", "load", "forecast", "variant")}
            point = {name: value for name in ("variant", "latency_s", "accuracy", "warm", "active")}
            change = {name: value for name in ("time", "from", "to", "reason")}
            made.append({name: value for name in fields} | {"name": f"all {k}"})
            moment = {name: value for name in ("time", "kind", "domain", "reason", "estimate", "original", "seconds")}
            made.append(model(f"followed {k}", adaptation={name: value for name in followed}, turn=dict.fromkeys(turn(), value)))
            made.append(model(f"moments {k}", adaptation=adaptation(points=[moment, None, moment | {"time": START}],
                                                                    events=[moment, 3, moment | {"time": START}]), turn=value))
            made.append(model(f"inside {k}", history=[entry, *history(START)[:3], entry | {"time": START}],
                              pool=[point, point, None], switches=[change, None, 3, change | {"time": START}]))
        self.open(lambda: status(*made, None, 7, device=dict.fromkeys(("load", "cpu", "memory", "power_w"), "hot")))
        self.assertEqual(self.count(".model"), len(made))
        for value in odd:
            self.server.answer = lambda value=value: {"time": value, "uptime_s": value, "version": value, "policy": value,
                                                      "device": value, "models": [model()]}
            asked = self.server.count
            while self.server.count < asked + 2:
                self.pause(20)
                self.js("dispatchEvent(new Event('online'))")  # asks at once
            self.assertEqual(self.text("#link"), "live", value)

    def test_too_much_of_everything_is_cut(self):
        long = "x" * 2000
        variants = [{"variant": f"v{k}", "latency_s": k / 1e4, "accuracy": k / 5e3, "warm": False} for k in range(3000)]
        switches = [{"time": START - k, "from": "a", "to": long, "reason": long} for k in range(1000)]
        events = [{"time": START - k, "kind": long, "domain": k, "reason": long, "seconds": k} for k in range(1000)]
        points = [{"time": START - k, "domain": k, "estimate": 0.5, "original": 0.4} for k in range(5000)]
        many = model(long, history=history(START, 5000), pool=variants, switches=switches,
                     adaptation=adaptation(method=long, state=long, net=long, events=events, points=points))
        self.open(lambda: status(many, *[model(f"m{k}", pool=[], history=[], switches=[]) for k in range(200)]))
        self.assertEqual(self.count(".model"), 64)
        self.assertEqual(self.count(".model:first-child .switches li"), 100)
        self.assertEqual(self.count(".model:first-child tbody tr"), 500)
        self.assertEqual(self.count(".model:first-child .events li"), 50)
        self.assertLess(self.js("document.body.textContent.length"), 400000)
        self.assertLessEqual(self.js("document.documentElement.scrollWidth"), 1280)


class Looks(LivePage):
    def test_fits_every_screen(self):
        for width, height in ((320, 640), (360, 800), (768, 1024), (1280, 800), (1920, 1080), (3840, 2160)):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    long = "a_name_that_does_not_end_" * 5
                    self.open(lambda: status(model(active=SMALLEST, adaptation=adaptation()), model(long, adaptation=adaptation(net=long))),
                              width=width, height=height, dark=dark, touch=width < 500)
                    self.assertLessEqual(self.js("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.js("[...document.querySelectorAll('.model *')].filter(n => n.checkVisibility() && "
                                             "n.getBoundingClientRect().right > innerWidth + 1).map(n => n.tagName)"), [])
                    self.keep(f"{width}x{height}-{'dark' if dark else 'light'}")
                    self.browser.shut(self.context)
        self.context = None

    def test_grows_on_a_wall(self):
        self.open(width=3840, height=2160)
        self.assertGreater(self.js("parseFloat(getComputedStyle(document.body).fontSize)"), 28)
        self.assertLessEqual(self.js("document.documentElement.scrollHeight"), 2160)

    def test_can_be_read_in_both_themes(self):
        grounds = set()
        for dark in (False, True):
            self.open(lambda: status(model(p95_s=0.02, adaptation=adaptation())), dark=dark)
            self.assertEqual(self.js(CONTRAST), [])
            grounds.add(self.js("getComputedStyle(document.body).backgroundColor"))
            self.browser.shut(self.context)
        self.context = None
        self.assertEqual(len(grounds), 2)

    def test_everything_that_takes_focus_has_a_name(self):
        self.open(lambda: status(model(), model("second")))
        nameless = self.js("[...document.querySelectorAll('[tabindex], button, select, input, summary, svg:not([aria-hidden])')]"
                           ".filter(n => !(n.getAttribute('aria-label') || n.labels?.length || n.textContent.trim())).length")
        self.assertEqual(nameless, 0)
        reached = []
        for _ in range(12):
            self.browser.press("Tab", 9)
            reached.append(self.js("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName"))
        card = ["Latency, ms", "Switches, the latest first", "Load of the machine, %", "Requests a second", "SUMMARY"]
        self.assertEqual(reached[:11], ["SELECT", *card, *card])


def main():
    global page, pictures
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=pathlib.Path, default=page)
    parser.add_argument("--pictures", type=pathlib.Path)
    options, rest = parser.parse_known_args()
    if find_chromium() is None:
        print("skipped: no Chromium here (Debian: apt-get install chromium)")
        return SKIPPED
    page, pictures = options.page.resolve(), options.pictures
    return 0 if unittest.main(argv=[sys.argv[0], *rest], exit=False).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
