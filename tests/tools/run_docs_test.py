"""What documents show is run, and compared with what the program prints."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from fake_program import write_program

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class RunDocs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.page = self.folder / "page.md"

    def run_tool(self, text, *options):
        self.page.write_text(text)
        command = [sys.executable, ROOT / "tools/run_docs", write_program(self.folder), *options, self.page]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout, done.returncode

    def test_runs_blocks_in_order_in_one_folder(self):
        output, code = self.run_tool("<!-- run -->\n```sh\nlimber --help > a\n```\n\n"
                                     "<!-- run -->\n```sh\ntest -s a\n```\n")
        self.assertEqual(code, 0, output)
        self.assertIn("2 of 2", output)

    def test_a_command_that_fails_is_shown(self):
        output, code = self.run_tool("<!-- run -->\n```sh\ntrue\nfalse\ntrue\n```\n")
        self.assertEqual(code, 1)
        self.assertIn("page.md:1: exit code 1", output)

    def test_outputs_are_compared_and_updated(self):
        page = "<!-- output of: echo hello -->\n\n{}\n<!-- end -->\n"
        self.assertEqual(self.run_tool(page.format("hello"))[1], 0)
        output, code = self.run_tool(page.format("bye"))
        self.assertEqual(code, 1)
        self.assertIn("echo hello", output)
        self.assertEqual(self.run_tool(page.format("bye"), "--update")[1], 0)
        self.assertEqual(self.page.read_text(), page.format("hello"))

    def test_an_output_without_its_end_is_an_error(self):
        output, code = self.run_tool("<!-- output of: echo hello -->\n\nhello\n")
        self.assertEqual(code, 1)
        self.assertIn("without '<!-- end -->'", output)

    def test_nothing_to_check_is_an_error(self):
        self.assertEqual(self.run_tool("# Title\n")[1], 1)


if __name__ == "__main__":
    unittest.main()
