"""The layer check finds what it is there to find."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def check(files):
    """Output and exit code of check_layers on a tree with the real rules and these files."""
    with tempfile.TemporaryDirectory() as folder:
        files = {"tools/layers.toml": (ROOT / "tools/layers.toml").read_text(), **files}
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, ROOT / "tools/check_layers", folder], text=True, stdout=subprocess.PIPE)
        return done.stdout, done.returncode


class CheckLayers(unittest.TestCase):
    def expect(self, files, *words):
        output, code = check(files)
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def test_accepts_includes_that_go_down(self):
        output, code = check({"src/ir/a.h": '#include "tensor/b.h"\n#include "ir/c.h"\n#include <vector>\n'})
        self.assertEqual(code, 0, output)

    def test_rejects_upwards(self):
        self.expect({"src/base/a.h": '#pragma once\n#include "ir/graph.h"\n'}, "src/base/a.h:2", "ir/graph.h")

    def test_reads_every_kind_of_source(self):
        kinds = ("cpp", "h", "inc", "inl", "cu", "cuh")
        text = '#include "train/trainer.h"\n' + "\n" * 500
        expected = [f"src/backend/cuda/a.{kind}{end}" for kind in kinds for end in (":1: ", ": 501 lines")]
        self.expect({f"src/backend/cuda/a.{kind}": text for kind in kinds}, *expected)

    def test_rejects_sideways(self):
        self.expect({"src/io/a.cpp": '#include "passes/fold.h"\n'}, "src/io/a.cpp:1", "passes")

    def test_rejects_one_backend_including_another(self):
        self.expect({"src/backend/cpu/a.cpp": '#include "backend/ref/x.h"\n'}, "backend/ref")

    def test_rejects_a_folder_without_a_level(self):
        self.expect({"src/misc/a.h": "\n"}, "src/misc/a.h", "not in tools/layers.toml")

    def test_rejects_third_party_headers_outside_their_folder(self):
        self.expect({"src/runtime/a.cpp": "#include <oneapi/dnnl/dnnl.hpp>\n"}, "backend/cpu")
        self.expect({"src/cli/a.cpp": "#include <onnx/onnx_pb.h>\n"}, "io")

    def test_rejects_backends_named_below_the_top(self):
        self.expect({"src/train/a.cpp": '#include "backend/cpu/cpu_backend.h"\n'}, "api, cli")

    def test_rejects_long_files_and_third_party_in_public_headers(self):
        self.expect({"src/ir/a.h": "\n" * 251}, "251 lines")
        self.expect({"src/ir/a.cpp": "\n" * 501}, "501 lines")
        self.expect({"include/limber/a.h": "#include <fmt/core.h>\n"}, "fmt/core.h")

    def test_rejects_two_types_of_one_name(self):
        text = "namespace limber {\nstruct Layer {\n};\n}\n"
        self.expect({"src/ir/a.h": text, "src/io/b.h": text}, "src/ir/a.h", "Layer", "another name")

    def test_rejects_a_test_nobody_builds(self):
        self.expect({"tests/ir/a_test.cpp": "\n"}, "nothing builds this test")


if __name__ == "__main__":
    unittest.main()
