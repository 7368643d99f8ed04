"""What users and dashboards read is what tests/golden/cli says. See tools/golden."""

import importlib.machinery
import importlib.util
import unittest

from server import ROOT, TROUPE

LOADER = importlib.machinery.SourceFileLoader("golden", str(ROOT / "tools/golden"))
golden = importlib.util.module_from_spec(importlib.util.spec_from_loader("golden", LOADER))
LOADER.exec_module(golden)
golden.TROUPE = TROUPE


class GoldenTest(unittest.TestCase):
    maxDiff = None

    def test_every_golden_text_still_holds(self):
        paths = sorted(golden.FOLDER.glob("*.txt"))
        self.assertGreater(len(paths), 4)
        for path in paths:
            with self.subTest(path.name):
                self.assertEqual(golden.compare(path), "")

    def test_the_tables_of_fields_in_the_manual_are_those_of_the_code(self):
        self.assertEqual(golden.compare_api(), "")


if __name__ == "__main__":
    unittest.main()
