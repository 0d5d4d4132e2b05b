"""The check of documents finds what it is there to find."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fake_program import write_program

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TREE = {
    "run": "cmd_build() {\n}\ncmd_bench() {\n}\n",
    "bench/infer.py": "",
    "src/ir/graph.h": "",
    "tools/kill": "import sys  # --kills\n",
    "tests/ir/graph_test.cpp": "TEST(Graph, HoldsNodes) {}\nTEST_P(EveryOp, HasACase) {}\n",
}


def check(files):
    """Output and exit code of check_docs on a small tree with these files."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as bin_folder:
        for name, text in {**TREE, **files}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, ROOT / "tools/check_docs", write_program(bin_folder), folder], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode


class CheckDocs(unittest.TestCase):
    def accept(self, text, **more):
        output, code = check({"docs/a.md": text, **more})
        self.assertEqual(code, 0, output)

    def reject(self, text, *words, name="docs/a.md"):
        output, code = check({name: text})
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def test_accepts_what_is_there(self):
        self.accept("# One\n\n[b](b.md#two-of-them), [self](#one), [web](https://example.org/x#y)\n"
                    "`limber look X --kind a`, `limber COMMAND --help`, `limber --version`, `--rows`, `--kills 5`\n"
                    "`tools/kill build/dev/limber --kills 3`, `./run build`, `./run bench infer`\n"
                    "`src/ir/graph.h:12`, `src/ir/*.h`, `tests/ir`, `Graph.HoldsNodes`, "
                    "`EveryOp.HasACase`\n"
                    "```sh\nlimber look X \\\n  --json | grep x --color\n"
                    "limber page a b -o c; limber page --output=d\n```\n",
                    **{"docs/b.md": "## Two `of` them!\n"})

    def test_rejects_links_to_nowhere(self):
        self.reject("\n[x](gone.md)\n", "docs/a.md:2", "gone.md")
        self.reject("![x](images/gone.svg)\n", "images/gone.svg")
        self.reject('<img src="gone.png">\n', "gone.png")
        self.reject("[x](docs/gone.md)\n", "README.md:1", "docs/gone.md", name="README.md")
        self.reject("[x](../../secret.md)\n", "secret.md")

    def test_rejects_anchors_without_heading(self):
        self.reject("# One\n[x](#two)\n", "docs/a.md:2", "#two")
        self.reject("[x](#two)\n```sh\n# two\n```\n", "#two")

    def test_rejects_commands_and_options_the_program_has_not(self):
        self.reject("`limber dance X`\n", "no command 'dance'", "look, page, touch")
        self.reject("```sh\ntrue\nlimber look X --jsn\n```\n", "docs/a.md:3", "--jsn")
        self.reject("`limber page --kind a`\n", "'limber page' has no option --kind")
        self.reject("```sh\nlimber look X \\\n  --output y\n```\n", "--output")
        self.reject("```sh\nbuild/dev/limber look X --wide\n```\n", "--wide")
        self.reject("give `--colour red`\n", "--colour")
        self.reject("`limber look X --wide`\n", "--wide", name="README.md")

    def test_rejects_unknown_commands_of_run(self):
        self.reject("`./run dance`\n", "'dance'")
        self.reject("```sh\n./run bench dance\n```\n", "'dance'")

    def test_rejects_paths_and_tests_that_are_not_there(self):
        self.reject("`src/ir/gone.h`\n", "src/ir/gone.h")
        self.reject("`src/gone/*.h`\n", "src/gone")
        self.reject("`Graph.Flies`\n", "no test Graph.Flies")

    def test_rejects_paths_of_machines(self):
        self.reject("see /home/me/x\n", "/home/me")

    def test_knows_the_messages_of_the_sources(self):
        source = {"src/a.cpp": 'invalid("{}: no image of "\n  "{} bytes; give another", a, b)'}
        page = "docs/troubleshooting.md"
        self.accept("", **source, **{page: "**`{file}: no image of {n} bytes; give another`**. Do.\n"})
        output, code = check({**source, page: "**`no picture of {n}`**\n"})
        self.assertEqual(code, 1, output)
        self.assertIn("no picture of", output)

    def test_wants_every_mechanism_in_the_table_of_papers(self):
        rows = [f"| {name} | not yet | | | |" for name in mechanisms()]
        self.accept("", **{"docs/papers.md": "\n".join(rows) + "\n"})
        self.reject("\n".join(rows[1:]) + "\n", "no row for ET1", name="docs/papers.md")
        for state, code, test, problem in (("nearly", "", "", "'nearly'"),
                                           ("done", "", "`Graph.HoldsNodes`", "no file"),
                                           ("partly", "`src/ir/graph.h`", "", "no test")):
            row = f"| ET1 timing | {state} | {code} | {test} | |"
            self.reject("\n".join([row, *rows[1:]]) + "\n", "ET1", problem, name="docs/papers.md")


def mechanisms():
    counts = {"ET": 6, "AN": 9, "AS": 8, "ED": 9, "MI": 8}
    return [f"{system}{i}" for system, count in counts.items() for i in range(1, count + 1)]


if __name__ == "__main__":
    unittest.main()
