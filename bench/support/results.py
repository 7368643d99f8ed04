"""The figures of a run: kept as JSON, and shown as a table.

A file holds {"bench", "date", "commit", "machine", "model", "threads", "engines": {name: version},
"figures": [{"name", "title", "unit", "more_is_better", "limit", "values": {engine: [a value per
round]}}]}. `limit` is the best that the machine allows, in the figure's unit, or null."""

import datetime
import json
import statistics
from dataclasses import dataclass

from support import project

OURS = "Troupe"


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    unit: str
    more_is_better: bool


class Results:
    def __init__(self, bench, model, threads, metrics):
        self.about = {"bench": bench, "date": str(datetime.date.today()),
                      "commit": project.commit(), "machine": project.machine(), "model": model,
                      "threads": threads, "engines": {}}
        self.metrics = metrics
        self.limits = {}
        self.values = {metric.name: {} for metric in metrics}

    def add(self, engine, version, found):
        """`found`: {metric: value} of one round, or of a part of it."""
        self.about["engines"].setdefault(engine, version)
        for name, value in found.items():
            self.values[name].setdefault(engine, []).append(value)

    def rounds(self, engine, name):
        return len(self.values[name].get(engine, []))

    def json(self):
        return self.about | {"figures": [
            {"name": metric.name, "title": metric.title, "unit": metric.unit,
             "more_is_better": metric.more_is_better, "limit": self.limits.get(metric.name),
             "values": self.values[metric.name]}
            for metric in self.metrics if self.values[metric.name]]}

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(self.json(), indent=1) + "\n", encoding="utf-8")
        scratch.replace(path)  # whole or not at all: a run may be ended at any time

    def resume(self, path):
        """Takes what an interrupted run of the same measured; says why where it cannot."""
        if not path.exists():
            return
        found = json.loads(path.read_text(encoding="utf-8"))
        for key in ("bench", "model", "threads", "machine", "commit"):
            if found[key] != self.about[key]:
                raise SystemExit(f"{path} was measured with another {key} ({found[key]}, now "
                                 f"{self.about[key]}): begin anew, without --resume")
        self.about["engines"] |= found["engines"]
        for figure in found["figures"]:
            self.values[figure["name"]] = figure["values"]
            self.limits[figure["name"]] = figure["limit"]

    def table(self):
        engines = [name for name in self.about["engines"]]
        engines.sort(key=lambda name: name != OURS)
        peers, limited = len(engines) > 1, any(self.limits.get(m.name) for m in self.metrics)
        head = ["", *engines] + ["ratio to the best other"] * peers + ["of the limit"] * limited
        rows = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
        for metric in self.metrics:
            values = self.values[metric.name]
            if not values:
                continue
            cells = [shown(values[name]) if name in values else "–" for name in engines]
            if peers:
                cells.append(ratio_cell(values, metric.more_is_better))
            if limited:
                cells.append(share_cell(values, self.limits.get(metric.name), metric))
            rows.append(f"| {metric.title}, {metric.unit} | " + " | ".join(cells) + " |")
        return "\n".join(rows)

    def rounds_text(self):
        """"3 alternating rounds", "1 to 3 alternating rounds"."""
        counts = {len(found) for values in self.values.values() for found in values.values()}
        least, most = min(counts, default=0), max(counts, default=0)
        return (f"{least} to " if least != most else "") + (
            f"{most} alternating round{'' if most == 1 else 's'}")

    def section(self):
        about = self.about
        engines = "; ".join(f"{name}: {version}" for name, version in about["engines"].items()
                            if name != OURS)
        return (f"{about['date']}, commit {about['commit']}; "
                f"{project.describe(about['machine'])}; {about['threads']} threads; "
                f"{about['model']}" + (f"; {engines}" if engines else "") + ".\n"
                f"Median of {self.rounds_text()} (least to most); a ratio above 1 means that Troupe "
                f"is ahead.\n\n{self.table()}\n")


def shown(values):
    middle = statistics.median(values)
    digits = 0 if middle >= 100 else 1 if middle >= 10 else 2
    text = f"{middle:.{digits}f}"
    if len(values) > 1:
        text += f" ({min(values):.{digits}f} to {max(values):.{digits}f})"
    return text


def ahead(ours, theirs, more_is_better):
    """Above 1 where `ours` is better."""
    return ours / theirs if more_is_better else theirs / ours


def ratio_cell(values, more_is_better):
    if OURS not in values or len(values) < 2:
        return "–"
    ours = statistics.median(values[OURS])
    name, ratio = min(((name, ahead(ours, statistics.median(found), more_is_better))
                       for name, found in values.items() if name != OURS), key=lambda x: x[1])
    return f"{ratio:.2f}" + (f" ({name})" if len(values) > 2 else "")


def share_cell(values, limit, metric):
    if not limit or OURS not in values:
        return "–"
    return f"{100 * ahead(statistics.median(values[OURS]), limit, metric.more_is_better):.0f} %"
