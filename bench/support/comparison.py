"""Two results of the same benchmark (support/results.py) beside each other: what became slower.

A figure is a regression where all of these hold:
- its median is worse by more than NOISE;
- every new value is worse than every old one, so that the spread of neither run explains it;
- the other engines, where the same versions were measured in both runs, did not become worse as
  well: then it was the machine."""

import statistics
from dataclasses import dataclass

from support.results import OURS, ahead

NOISE = 0.05       # of a median: what two runs of the same program differ by in any case
ROUNDS_LEAST = 3   # fewer values say nothing about their spread


@dataclass(frozen=True)
class Row:
    title: str
    old: float
    new: float
    ratio: float       # above 1: better now
    spread: tuple      # of the old and the new values: (most - least) / median
    peers: float       # the same ratio of the others' medians, or None
    verdict: str       # "", "better", "regression", "the machine", "too few rounds", "missing"

    def cells(self):
        if self.verdict == "missing":
            return [self.title, f"{self.old:.4g}", "–", "–", "–", "–", self.verdict]
        return [self.title, f"{self.old:.4g}", f"{self.new:.4g}", f"{self.ratio:.2f}",
                " / ".join(f"{100 * part:.0f} %" for part in self.spread),
                "–" if self.peers is None else f"{self.peers:.2f}", self.verdict]


def differences(old, new):
    """Why the two cannot be compared; empty where they can."""
    def of(results):
        return {"benchmark": results["bench"], "kind of machine": results["machine"]["kind"],
                "model": results["model"], "number of threads": results["threads"]}
    return [f"another {key}: {was}, now {of(new)[key]}" for key, was in of(old).items()
            if of(new)[key] != was]


def compare(old, new):
    """A row for each figure of ours in `old`, in its order."""
    figures = {figure["name"]: figure for figure in new["figures"]}
    same = [name for name, version in old["engines"].items()
            if name != OURS and new["engines"].get(name) == version]
    return [compare_figure(figure, figures.get(figure["name"]), same)
            for figure in old["figures"] if OURS in figure["values"]]


def compare_figure(old, new, peers):
    title, more = f"{old['title']}, {old['unit']}", old["more_is_better"]
    before = old["values"][OURS]
    if new is None or OURS not in new["values"] or new["title"] != old["title"]:
        return Row(title, statistics.median(before), 0.0, 0.0, (0.0, 0.0), None, "missing")
    now = new["values"][OURS]
    ratio = ahead(statistics.median(now), statistics.median(before), more)
    drifts = [ahead(statistics.median(new["values"][name]),
                    statistics.median(old["values"][name]), more)
              for name in peers if name in old["values"] and name in new["values"]]
    drift = statistics.median(drifts) if drifts else None
    return Row(title, statistics.median(before), statistics.median(now), ratio,
               (spread(before), spread(now)), drift, judge(before, now, ratio, drift, more))


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def judge(before, now, ratio, drift, more):
    if min(len(before), len(now)) < ROUNDS_LEAST:
        return "too few rounds"
    if not more:
        before, now = [-value for value in before], [-value for value in now]
    if ratio > 1 + NOISE and min(now) > max(before):
        return "better"
    if ratio < 1 - NOISE and max(now) < min(before):
        return "the machine" if drift and ratio / drift >= 1 - NOISE else "regression"
    return ""


def show(rows):
    table = [["", "old", "new", "ratio", "spreads", "others", ""]] + [row.cells() for row in rows]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return "\n".join("  ".join([line[0].ljust(widths[0])] + [
        cell.rjust(width) for cell, width in zip(line[1:-1], widths[1:])] + [line[-1]]).rstrip()
        for line in table)
