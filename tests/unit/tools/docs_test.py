"""What docs/ says follows what the source has."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


class DocsTest(unittest.TestCase):
    def test_the_stops_are_those_of_the_schema(self):
        schema = (ROOT / "schema/control.capnp").read_text(encoding="utf-8")
        body = re.search(r"enum Stop \{(.*?)\n\}", schema, re.DOTALL)[1]
        stops = re.findall(r"(\w+) @\d+;", body)
        self.assertEqual(len(stops), 8)
        walkthrough = (ROOT / "docs/walkthrough.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^## (\d) (\w+)", walkthrough, re.MULTILINE),
                         [(str(i), stop) for i, stop in enumerate(stops, 1)])

    def test_the_picture_in_the_readme_shows_every_stop(self):
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        for number, stop in enumerate(("accepted", "routed", "reserved", "prefilled", "moved",
                                       "joined", "emitted", "finished"), 1):
            self.assertRegex(readme, rf"\b{number} {stop}\b")

    def test_every_decision_is_in_the_index(self):
        folder = ROOT / "docs/adr"
        index = (folder / "README.md").read_text(encoding="utf-8")
        decisions = sorted(path.name for path in folder.glob("0*.md"))
        self.assertEqual(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index), decisions)
        numbers = [name[:4] for name in decisions]
        self.assertEqual(len(numbers), len(set(numbers)))


if __name__ == "__main__":
    unittest.main()
