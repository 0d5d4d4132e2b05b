"""Pages of commands follow the program, and keep what people wrote."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fake_program import LOOK, TOP, write_program

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WRITTEN = "## Examples\n\nLook.\n\n## Output\n\nRows.\n\n## Exit codes\n\n0.\n"


class CommandDocs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.docs = self.folder / "docs"
        self.docs.mkdir()
        self.program = write_program(self.folder)

    def run_tool(self, *options):
        command = [sys.executable, ROOT / "tools/command_docs", self.program, *options, self.docs]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode

    def write_pages(self):
        self.run_tool()
        for page in (self.docs / "commands").glob("*.md"):
            page.write_text(page.read_text().split("## Examples")[0] + WRITTEN)
        self.assertEqual(self.run_tool("--check")[1], 0, self.run_tool("--check")[0])

    def test_writes_a_page_for_each_command_of_the_program(self):
        output, code = self.run_tool()
        self.assertEqual(code, 1, output)  # the sections are still empty
        self.assertIn("'## Examples' is missing", output)
        page = (self.docs / "commands/look.md").read_text()
        for text in ("limber look [OPTIONS] model", "limber look x.onnx --json",
                     "| `--order increasing\\|decreasing\\|random` | How rows are sorted |",
                     "| `--rows one\\|two\\|three\\|fours!` | Exactly as wide as the column |"):
            self.assertIn(text, page)
        self.assertIn("[page](commands/page.md)", (self.docs / "commands.md").read_text())

    def test_keeps_what_was_written_by_hand(self):
        self.write_pages()
        write_program(self.folder, look=LOOK.replace("Which", "Which of two"))
        output, code = self.run_tool("--check")
        self.assertEqual(code, 1)
        self.assertIn("commands/look.md: not what the program's help says", output)
        self.assertNotIn("page.md", output)
        self.assertEqual(self.run_tool()[1], 0)
        page = (self.docs / "commands/look.md").read_text()
        self.assertIn("Which of two", page)
        self.assertTrue(page.endswith(WRITTEN))

    def test_finds_commands_that_are_new_or_gone(self):
        self.write_pages()
        write_program(self.folder, top=TOP.replace("  page ", "  look2"))
        (self.folder / "look2").write_text(LOOK)
        output, code = self.run_tool("--check")
        self.assertEqual(code, 1)
        self.assertIn("commands/look2.md", output)
        self.assertIn("commands/page.md: the program has no such command", output)

    def test_the_server_lists_its_own_options(self):
        write_program(self.folder, top=TOP.replace("  touch ", "  serve                       Serves it\n  touch "))
        (self.folder / "serve").write_text(LOOK.replace("limber look", "limber serve").replace("Machine", "Other"))
        self.write_pages()
        index = (self.docs / "commands.md").read_text()
        self.assertIn("| `--json` | Machine-readable output |", index)
        self.assertIn("but `serve`, whose page lists its own", index)
        self.assertIn("Other-readable output", (self.docs / "commands/serve.md").read_text())
        self.assertNotIn("those of all commands", (self.docs / "commands/serve.md").read_text())
        self.assertIn("those of all commands", (self.docs / "commands/touch.md").read_text())

    def test_refuses_a_page_without_its_marks(self):
        self.write_pages()
        (self.docs / "commands/page.md").write_text("# mine\n" + WRITTEN)
        output, code = self.run_tool()
        self.assertEqual(code, 1)
        self.assertIn("commands/page.md: there is no", output)
        self.assertEqual((self.docs / "commands/page.md").read_text(), "# mine\n" + WRITTEN)


if __name__ == "__main__":
    unittest.main()
