"""tools/fetch_xgrammar leaves the right folder or none."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NAME = "xgrammar-0.2.9"
FILES = {"LICENSE": b"terms", "cpp/grammar.cc": b"int x;", "cpp/tvm_ffi/python.cc": b"no",
         "include/xgrammar/grammar.h": b"#pragma once", "python/setup.py": b"no",
         "3rdparty/picojson/picojson.h": b"json"}
NO_NETWORK = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_FIND_LINKS": "",
              "PIP_RETRIES": "0", "PIP_NO_INDEX": "1"}


def pack(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{NAME}/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


class FetchXgrammarTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "deps" / NAME
        self.package = self.folder / "package.tar.gz"
        self.digest = pack(self.package, FILES)

    def fetch(self, *options, sha256=None):
        return subprocess.run(
            [sys.executable, ROOT / "tools/fetch_xgrammar", "--output", self.output,
             "--sha256", sha256 or self.digest, *options], capture_output=True, text=True,
            check=False, env=dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"),
                                  **NO_NETWORK))

    def assert_nothing_left(self):
        left = [path.name for path in self.output.parent.glob("*")] + \
               [path.name for path in self.output.parent.glob(".fetch-*")]
        self.assertEqual([name for name in left if name != ".lock"], [])

    def test_what_the_build_needs_is_unpacked_and_nothing_else(self):
        run = self.fetch("--package", self.package)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        found = {str(path.relative_to(self.output)) for path in self.output.rglob("*")
                 if path.is_file()}
        self.assertEqual(found, {"COMPLETE", "LICENSE", "cpp/grammar.cc",
                                 "include/xgrammar/grammar.h", "3rdparty/picojson/picojson.h"})

    def test_a_present_folder_needs_no_network(self):
        self.fetch("--package", self.package)
        run = self.fetch()
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "", ""))

    def test_a_package_in_the_cache_needs_no_network(self):
        cache = self.folder / "cache/troupe"
        cache.mkdir(parents=True)
        (cache / f"{NAME}.tar.gz").write_bytes(self.package.read_bytes())
        self.assertEqual(self.fetch().returncode, 0)
        self.assertTrue((self.output / "COMPLETE").is_file())

    def test_a_damaged_package_in_the_cache_is_not_used(self):
        cache = self.folder / "cache/troupe"
        cache.mkdir(parents=True)
        (cache / f"{NAME}.tar.gz").write_bytes(self.package.read_bytes()[:-9])
        run = self.fetch()
        self.assertEqual(run.returncode, 1)
        self.assertIn("needs the network", run.stderr)
        self.assert_nothing_left()

    def test_a_wrong_digest_or_a_cut_package_is_an_error_that_leaves_nothing(self):
        run = self.fetch("--package", self.package, sha256="0" * 64)
        self.assertEqual(run.returncode, 1)
        self.assertIn("wrong SHA-256", run.stderr)
        for content in (b"", b"hello", self.package.read_bytes()[:100]):
            with self.subTest(size=len(content)):
                self.package.write_bytes(content)
                run = self.fetch("--package", self.package,
                                 sha256=hashlib.sha256(content).hexdigest())
                self.assertEqual(run.returncode, 1)
                self.assertNotIn("Traceback", run.stderr)
                self.assert_nothing_left()

    def test_a_path_that_leads_out_of_the_folder_is_refused(self):
        digest = pack(self.package, {"cpp/../../../evil.cc": b"x"})
        run = self.fetch("--package", self.package, sha256=digest)
        self.assertEqual(run.returncode, 1)
        self.assertIn("evil.cc", run.stderr)
        self.assert_nothing_left()

    def test_another_version_is_replaced(self):
        self.fetch("--package", self.package)
        digest = pack(self.package, dict(FILES, LICENSE=b"other terms"))
        self.assertEqual(self.fetch("--package", self.package, sha256=digest).returncode, 0)
        self.assertEqual((self.output / "LICENSE").read_bytes(), b"other terms")


if __name__ == "__main__":
    unittest.main()
