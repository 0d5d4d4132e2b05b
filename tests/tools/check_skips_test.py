"""The check of skipped tests finds what it is there to find."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PASSED = '<testcase name="A.Passes" status="run"/>'


def skip(name):
    return f'<testcase name="{name}" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'


def check(*cases):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "tests.xml")
        file.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
        command = [sys.executable, ROOT / "tools/check_skips", file]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE)
        return done.stdout, done.returncode


class CheckSkips(unittest.TestCase):
    def test_accepts_tests_that_ran(self):
        output, code = check(PASSED)
        self.assertEqual(code, 0, output)

    def test_accepts_a_skip_with_a_reason(self):
        output, code = check(PASSED, skip("OpenDataset.RealDataSets"))
        self.assertEqual(code, 0, output)
        self.assertIn("public data sets", output)

    def test_rejects_any_other(self):
        output, code = check(PASSED, skip("A.NeverRuns"))
        self.assertEqual(code, 1, output)
        self.assertIn("A.NeverRuns: SKIPPED", output)


if __name__ == "__main__":
    unittest.main()
