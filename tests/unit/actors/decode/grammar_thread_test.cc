#include "actors/decode/grammar_thread.h"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "engine/grammar/limits.h"

namespace troupe {
namespace {

// Compiles nothing; a grammar whose text is "stuck" takes until the gate opens.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_open = false;
  int stuck = 0;

  void pass() {
    std::unique_lock lock(mutex);
    ++stuck;
    changed.notify_all();
    changed.wait(lock, [this] { return is_open; });
  }
  void open() {
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
  }
  void wait_for_stuck(int count) {
    std::unique_lock lock(mutex);
    const bool came =
        changed.wait_for(lock, std::chrono::seconds(20), [this, count] { return stuck >= count; });
    BOOST_REQUIRE(came);
  }
};

struct FakeCompiler final : GrammarCompiler {
  explicit FakeCompiler(std::shared_ptr<Gate> gate) : gate(std::move(gate)) {}
  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSpec& spec) override {
    if (spec.text == "stuck") gate->pass();
    return invalid_argument(spec.text);
  }
  std::shared_ptr<Gate> gate;
};
struct FakeVocabulary final : GrammarVocabulary {
  explicit FakeVocabulary(std::shared_ptr<Gate> gate) : gate(std::move(gate)) {}
  [[nodiscard]] std::unique_ptr<GrammarCompiler> make_compiler() const override {
    return std::make_unique<FakeCompiler>(gate);
  }
  [[nodiscard]] size_t vocab_size() const override { return 32; }
  std::shared_ptr<Gate> gate;
};

// A clock that threads may read.
struct SharedClock final : Clock {
  [[nodiscard]] TimePoint now() const override { return TimePoint(Duration(ns.load())); }
  [[nodiscard]] int64_t unix_seconds() const override { return 0; }
  void advance(Duration by) { ns += by.count(); }
  std::atomic<int64_t> ns{1};
};

struct Answers {
  void put(uint64_t ticket, const Status& status) {
    const std::lock_guard lock(mutex);
    BOOST_TEST(answers.emplace(ticket, status).second);  // once
    changed.notify_all();
  }
  Status wait(uint64_t ticket) {
    std::unique_lock lock(mutex);
    const bool came =
        changed.wait_for(lock, std::chrono::seconds(20), [&] { return answers.contains(ticket); });
    BOOST_REQUIRE(came);
    return answers.at(ticket);
  }
  size_t count() {
    const std::lock_guard lock(mutex);
    return answers.size();
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint64_t, Status> answers;
};

struct Fixture {
  ~Fixture() { gate->open(); }
  SharedClock clock;
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  Answers answers;
  GrammarThread thread{
      clock,
      [gate = gate]() -> Result<std::shared_ptr<const GrammarVocabulary>> {
        return std::shared_ptr<const GrammarVocabulary>(std::make_shared<FakeVocabulary>(gate));
      },
      [this](uint64_t ticket, const Result<GrammarThread::Grammar>& grammar) {
        answers.put(ticket, grammar.status());
      }};

  void compile(uint64_t ticket, const std::string& text) {
    BOOST_TEST(thread.compile(ticket, {GrammarKind::kRegex, text}).ok());
  }
  void let_it_be_overdue() {
    clock.advance(grammar_limits::kCompileDeadline + std::chrono::milliseconds(1));
    thread.on_tick();
  }
};

BOOST_AUTO_TEST_SUITE(grammar_thread)

BOOST_AUTO_TEST_CASE(each_ticket_is_answered_once) {
  Fixture f;
  for (uint64_t ticket = 1; ticket <= 20; ++ticket) f.compile(ticket, std::to_string(ticket));
  for (uint64_t ticket = 1; ticket <= 20; ++ticket)
    BOOST_TEST(f.answers.wait(ticket).message() == std::to_string(ticket));
  BOOST_TEST(f.answers.count() == 20U);
}

BOOST_AUTO_TEST_CASE(an_overdue_compilation_fails_and_the_others_go_on) {
  Fixture f;
  f.compile(1, "stuck");
  f.gate->wait_for_stuck(1);
  f.compile(2, "next");
  f.thread.on_tick();  // in time
  BOOST_TEST(f.answers.count() == 0U);
  f.let_it_be_overdue();
  BOOST_TEST((f.answers.wait(1).code() == StatusCode::kResourceExhausted));
  BOOST_TEST(f.answers.wait(2).message() == "next");
  f.gate->open();  // what it finds now, nobody hears
  f.compile(3, "last");
  BOOST_TEST(f.answers.wait(3).message() == "last");
  BOOST_TEST(f.answers.count() == 3U);
}

BOOST_AUTO_TEST_CASE(while_too_many_are_stuck_others_are_refused) {
  Fixture f;
  for (uint64_t i = 0; i < grammar_limits::kStuckCompilesMax; ++i) {
    f.compile(10 + i, "stuck");
    f.gate->wait_for_stuck(static_cast<int>(i) + 1);
    f.compile(20 + i, "waits");
    if (i + 1 < grammar_limits::kStuckCompilesMax) f.thread.give_up(20 + i);
    f.let_it_be_overdue();
    BOOST_TEST((f.answers.wait(10 + i).code() == StatusCode::kResourceExhausted));
  }
  const uint64_t last = 20 + grammar_limits::kStuckCompilesMax - 1;
  BOOST_TEST((f.answers.wait(last).code() == StatusCode::kResourceExhausted));
  const Status refused = f.thread.compile(30, {GrammarKind::kRegex, "a"});
  BOOST_TEST((refused.code() == StatusCode::kResourceExhausted));
  BOOST_TEST(refused.message().find("retry later") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_given_up_while_it_waits_is_not_compiled) {
  Fixture f;
  f.compile(1, "stuck");
  f.gate->wait_for_stuck(1);
  f.compile(2, "given up");
  f.compile(3, "kept");
  f.thread.give_up(2);
  f.gate->open();
  BOOST_TEST(f.answers.wait(3).message() == "kept");
  BOOST_TEST(f.answers.count() == 2U);
}

BOOST_AUTO_TEST_CASE(the_queue_is_bounded) {
  Fixture f;
  f.compile(1, "stuck");
  f.gate->wait_for_stuck(1);
  for (size_t i = 0; i < grammar_limits::kCompileQueueMax; ++i) f.compile(100 + i, "a");
  const Status refused = f.thread.compile(2, {GrammarKind::kRegex, "a"});
  BOOST_TEST((refused.code() == StatusCode::kResourceExhausted));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
