"""A prefill worker on another network: narrow, losing packets, and cut off in the middle of it all.
Needs root for a network namespace."""

import os
import re
import shutil
import subprocess
import time
import unittest

from cluster import Asked, Cluster
from server import wait_until

SPACE = f"troupe{os.getpid()}"
# Of this run alone, so that two may run at once.
HERE, THERE = (f"10.213.{os.getpid() % 250}.{host}" for host in (1, 2))
LINK_HERE, LINK_THERE = (f"tr{os.getpid()}{end}" for end in "ab")
STORY = "The old lighthouse keeper climbed the stairs every evening, counting each of them aloud. "
CUT_S = 5  # half a second, and what a machine short of processors adds


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=20)


def make_network():
    run("ip", "netns", "add", SPACE)
    run("ip", "link", "add", LINK_HERE, "type", "veth", "peer", "name", LINK_THERE, "netns", SPACE)
    run("ip", "addr", "add", f"{HERE}/24", "dev", LINK_HERE)
    run("ip", "link", "set", LINK_HERE, "up")
    for words in (["addr", "add", f"{THERE}/24", "dev", LINK_THERE],
                  ["link", "set", LINK_THERE, "up"], ["link", "set", "lo", "up"]):
        run("ip", "-n", SPACE, *words)


def remove_network():
    run("ip", "netns", "del", SPACE, check=False)  # its end of the link takes ours along


def shape(rate, burst, limit):
    """Both ways: what comes faster than the rate waits in a queue of so many bytes, or is lost."""
    for prefix, link in (([], LINK_HERE), (["-n", SPACE], LINK_THERE)):
        run("tc", *prefix, "qdisc", "replace", "dev", link, "root", "tbf", "rate", rate, "burst",
            burst, "limit", limit)


def dropped():
    shown = run("tc", "-n", SPACE, "-s", "qdisc", "show", "dev", LINK_THERE).stdout
    return sum(map(int, re.findall(r"dropped (\d+)", shown)))


class ClusterNetworkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("tc")):
            raise unittest.SkipTest("network namespaces need root, ip and tc")
        try:
            make_network()
        except subprocess.CalledProcessError as error:
            remove_network()
            raise unittest.SkipTest(f"no network namespaces here: {error.stderr}") from error
        cls.addClassCleanup(remove_network)
        cls.cluster = Cluster(prefill=0, decode=1, host=HERE)
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.far = cls.cluster.add(cls.cluster.make_worker(
            "troupe-prefill", "--metrics-host", THERE, host=THERE,
            prefix=("ip", "netns", "exec", SPACE)))
        cls.cluster.wait_ready()
        cls.wait_for_far()

    @classmethod
    def wait_for_far(cls):
        def accepted():
            workers = cls.cluster.router.get("/cluster").json()["workers"]
            return any(w["role"] == "prefill" and w["accepting"] for w in workers)
        try:
            wait_until(accepted, 30, "the prefill worker behind the link takes part")
        except AssertionError as error:
            raise AssertionError(f"{cls.far.output()[-3000:]}\n"
                                 f"{cls.cluster.router.output()[-3000:]}") from error

    def imports(self, result):
        return self.cluster.decode[0].metric("troupe_kv_imports_total", result=result)

    def ask_both(self, bodies):
        """The answers while the far worker helps, and those of the warm decode worker alone."""
        asked = [Asked(self.cluster.router, body) for body in bodies]
        for request in asked:
            request.wait(90)
            self.assertIsNone(request.error)
        again = [Asked(self.cluster.router, body).wait(90) for body in bodies]
        for one, two in zip(asked, again):
            self.assertIsNone(two.error)
            self.assertEqual(one.answer["choices"], two.answer["choices"])

    def bodies(self, name, count):
        return [{"prompt": f"{name} {i}. " + STORY * 30, "max_tokens": 8, "temperature": 0,
                 "logprobs": 1} for i in range(count)]

    def test_a_narrow_link_that_loses_packets_costs_time_alone(self):
        shape("400mbit", "64kb", "96kb")
        before, lost = self.imports("whole"), dropped()
        self.ask_both(self.bodies("Narrow", 4))
        self.assertGreater(self.imports("whole"), before, "nothing came over the link")
        self.assertGreater(dropped(), lost, "the link lost nothing")
        self.cluster.wait_idle()
        self.cluster.assert_alive()

    def test_a_link_that_is_cut_is_noticed_and_missed_by_none(self):
        shape("1gbit", "256kb", "4mb")
        asked = [Asked(self.cluster.router, body) for body in self.bodies("Cut", 6)]
        time.sleep(0.3)  # into the first prompts
        noticed = self.cluster.router.output().count(f"node {THERE}")
        run("ip", "link", "set", LINK_HERE, "down")
        wait_until(lambda: "it was silent" in self.cluster.router.output(), CUT_S,
                   "the cut is noticed")
        for request in asked:
            request.wait(60)
            self.assertIsNone(request.error)
        run("ip", "link", "set", LINK_HERE, "up")
        self.wait_for_far()
        self.assertGreater(self.cluster.router.output().count(f"node {THERE}"), noticed)
        self.ask_both(self.bodies("Healed", 2))
        self.cluster.wait_idle()
        self.cluster.assert_alive()


if __name__ == "__main__":
    unittest.main()
