"""Reports of users, tried: what a stream may show, and when. Stop strings over tokens, characters
over tokens, usage, the order of events; streamed and not are one answer."""

import unittest

from server import MODEL, chat, shared_server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
STORY = chat("Tell me a story about a lighthouse.", temperature=0)


class StreamCasesTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def answer(self, path, body):
        reply = self.server.post(path, {"model": MODEL} | body)
        self.assertEqual(reply.status, 200, reply.body[:500])
        return reply.json()

    def tokens(self, text):
        return self.server.post("/tokenize", {"model": MODEL, "prompt": text}).json()["tokens"]

    @staticmethod
    def text(choice):
        return choice["message"]["content"] if "message" in choice else choice["text"]

    def streamed(self, path, body):
        """(texts, reasons, usage, events) of a stream whose order of events is right."""
        events = self.server.stream(path, body)
        asked = body.get("stream_options", {}).get("include_usage", False)
        usage = None
        if asked:
            last = events.pop()
            self.assertEqual(last["choices"], [])
            usage = last["usage"]
            self.assertEqual(usage["total_tokens"],
                             usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual(len({(e["id"], e["created"], e["model"], e["object"]) for e in events}), 1)
        texts, reasons, seen = {}, {}, set()
        for event in events:
            self.assertEqual("usage" in event, asked)
            self.assertIsNone(event.get("usage"))
            (choice,) = event["choices"]
            index = choice["index"]
            self.assertNotIn(index, reasons, "nothing comes after a choice's end")
            if path == CHAT:
                delta = choice["delta"]
                self.assertEqual(delta.get("role"), None if index in seen else "assistant")
                piece = delta.get("content") or ""
                if choice["finish_reason"] is not None:
                    self.assertEqual(delta, {})
            else:
                piece = choice["text"]
            seen.add(index)
            texts[index] = texts.get(index, "") + piece
            self.assertIn(choice["finish_reason"], (None, "stop", "length"))
            if choice["finish_reason"] is not None:
                reasons[index] = choice["finish_reason"]
        self.assertEqual(sorted(reasons), sorted(texts))
        return texts, reasons, usage, events

    def assert_same_streamed(self, path, body, every_option=False):
        whole = self.answer(path, body)
        for asked in (None, False, True) if every_option else (True,):
            options = {} if asked is None else {"stream_options": {"include_usage": asked}}
            with self.subTest(path=path, body=body, options=options):
                texts, reasons, usage, _ = self.streamed(path, body | options)
                self.assertEqual(texts, {c["index"]: self.text(c) for c in whole["choices"]})
                self.assertEqual(reasons,
                                 {c["index"]: c["finish_reason"] for c in whole["choices"]})
                if usage is not None:
                    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
                        self.assertEqual(usage[name], whole["usage"][name])
        return whole

    def test_a_stream_is_its_answer_with_usage_where_asked_for(self):
        for body in (STORY | {"max_tokens": 1}, STORY | {"max_tokens": 7},
                     chat("What is the capital of France?", temperature=0, max_tokens=40),
                     STORY | {"max_tokens": 6, "n": 3, "temperature": 1, "seed": 4},
                     STORY | {"max_tokens": 30, "stop": ["a", "e"]}):
            self.assert_same_streamed(CHAT, body, every_option=True)
        for body in ({"prompt": "One, two,", "max_tokens": 1, "temperature": 0},
                     {"prompt": ["One, two,", "Eins, zwei,"], "n": 2, "max_tokens": 5,
                      "temperature": 1, "seed": 9},
                     {"prompt": "One, two,", "echo": True, "max_tokens": 4, "temperature": 0}):
            self.assert_same_streamed(COMPLETIONS, body, every_option=True)

    def test_stream_options_belong_to_streams(self):
        for path, body in ((CHAT, STORY), (COMPLETIONS, {"prompt": "x"})):
            for fields in ({}, {"stream": False}, {"stream": None}):
                reply = self.server.post(path, {"model": MODEL} | body | fields | {
                    "stream_options": {"include_usage": True}})
                self.assertEqual(reply.status, 400)
                self.assertEqual(reply.json()["error"]["param"], "stream_options")

    def test_no_part_of_a_stop_string_is_ever_shown(self):
        """At starts all over the text and at every length, streamed and not."""
        text = self.text(self.answer(CHAT, STORY | {"max_tokens": 32})["choices"][0])
        cases = [(start, 2 + start % 7) for start in range(0, len(text) - 9, 13)]
        for start, length in cases:
            stop = text[start:start + length]
            with self.subTest(stop=stop):
                body = STORY | {"max_tokens": 32, "stop": stop}
                texts, reasons, _, _ = self.streamed(CHAT, body)
                self.assertEqual(texts[0], text[:text.index(stop)])
                self.assertEqual(reasons[0], "stop")

    def test_of_two_stops_the_one_that_is_complete_first_ends_the_text(self):
        text = self.text(self.answer(CHAT, STORY | {"max_tokens": 32})["choices"][0])
        middle = len(text) // 2
        inner, outer = text[middle + 2:middle + 4], text[middle:middle + 8]
        for stops, stop in (([outer, inner], inner), ([inner, outer], inner),
                            ([outer, text[middle:middle + 4]], text[middle:middle + 4]),
                            (["never said", outer], outer),
                            ([outer + "never said", outer[:5] + "!"], None)):
            with self.subTest(stops=stops):
                whole = self.assert_same_streamed(CHAT, STORY | {"max_tokens": 32, "stop": stops})
                expected = text if stop is None else text[:text.index(stop)]
                self.assertEqual(self.text(whole["choices"][0]), expected)

    def test_what_was_held_back_comes_out_at_any_other_end(self):
        text = self.text(self.answer(CHAT, STORY | {"max_tokens": 12})["choices"][0])
        # The text ends in the middle of what could have become a stop string.
        whole = self.assert_same_streamed(CHAT, STORY | {"max_tokens": 12,
                                                         "stop": text[-4:] + "never said"})
        self.assertEqual(self.text(whole["choices"][0]), text)
        self.assertEqual(whole["choices"][0]["finish_reason"], "length")

    def test_the_stop_string_is_shown_when_asked_for(self):
        text = self.text(self.answer(CHAT, STORY | {"max_tokens": 32})["choices"][0])
        stop = text[30:36]
        whole = self.assert_same_streamed(CHAT, STORY | {
            "max_tokens": 32, "stop": [stop], "include_stop_str_in_output": True})
        self.assertEqual(self.text(whole["choices"][0]), text[:text.index(stop) + len(stop)])

    def test_a_stop_of_one_choice_leaves_the_others_running(self):
        body = STORY | {"n": 4, "temperature": 1, "seed": 1, "max_tokens": 24}
        texts = [self.text(choice) for choice in self.answer(CHAT, body)["choices"]]
        words = [word for word in texts[0].split() if len(word) > 4
                 and not any(word in other for other in texts[1:])]
        whole = self.assert_same_streamed(CHAT, body | {"stop": words[0]})
        self.assertEqual([self.text(choice) for choice in whole["choices"]],
                         [texts[0][:texts[0].index(words[0])], *texts[1:]])

    def test_a_prompt_that_ends_inside_a_character_never_comes_back(self):
        """Every cut of ids whose last characters have two, three and four bytes."""
        for text in ("Good night 🦦", "Crème brûlée é", "日本", "👩‍👧"):
            ids = self.tokens(text)
            for cut in range(max(1, len(ids) - 3), len(ids)):
                for fields in ({"n": 2, "temperature": 1, "seed": cut}, {"temperature": 0}):
                    body = {"prompt": ids[:cut], "max_tokens": 3, "ignore_eos": True} | fields
                    with self.subTest(text=text, cut=cut, fields=fields):
                        whole = self.answer(COMPLETIONS, body)["choices"]
                        texts, _, _, _ = self.streamed(COMPLETIONS, body)
                        self.assertEqual(texts, {c["index"]: c["text"] for c in whole})
                        echoed = self.answer(COMPLETIONS, body | {"echo": True})["choices"]
                        prompt = self.server.post("/detokenize", {
                            "model": MODEL, "tokens": ids[:cut]}).json()["prompt"]
                        for choice, echo in zip(whole, echoed):
                            self.assertTrue(echo["text"].startswith(prompt.rstrip("\ufffd")))
                            self.assertTrue(echo["text"].endswith(choice["text"].lstrip("\ufffd")))

    def test_forced_characters_come_whole(self):
        """A bias forces the bytes of one character one after another."""
        ids = self.tokens("🦦")
        self.assertGreater(len(ids), 1)
        for token in ids:  # never a whole character: replacement characters, one for each run
            body = {"prompt": "x", "max_tokens": 3, "logit_bias": {str(token): 100},
                    "temperature": 0}
            whole = self.answer(COMPLETIONS, body)["choices"][0]["text"]
            self.assertIn("\ufffd", whole)
            self.assertEqual(self.streamed(COMPLETIONS, body)[0][0], whole)

    def test_a_replacement_character_that_the_model_wrote_passes(self):
        ids = self.tokens("\ufffd")
        if len(ids) != 1:
            self.skipTest("this tokenizer writes it in several tokens")
        body = {"prompt": "x", "max_tokens": 3, "logit_bias": {str(ids[0]): 100}, "temperature": 0}
        self.assertEqual(self.answer(COMPLETIONS, body)["choices"][0]["text"], "\ufffd" * 3)


if __name__ == "__main__":
    unittest.main()
