#include "apps/node/model_seeker.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "apps/node/described_model.h"
#include "engine/model/gguf_file.h"
#include "tests/support/gguf_writer.h"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(model_seeker)

namespace {

class Questions final : public wire::Outbox {
 public:
  Status send(std::string_view endpoint, const wire::Message& message) override {
    if (const auto* refused = std::get_if<wire::Refused>(&message)) {
      refusals.emplace_back(std::string(endpoint) + ": " + refused->reason);
      return {};
    }
    const auto* describe = std::get_if<wire::Describe>(&message);
    BOOST_REQUIRE(describe != nullptr);
    BOOST_TEST(describe->reply_to == "me/gateway");
    asked.emplace_back(endpoint);
    return {};
  }
  std::vector<std::string> asked, refusals;
};

wire::Described described() {
  const std::string bytes = test::make_tiny_model({});
  const auto file =
      GgufFile::from_bytes(std::as_bytes(std::span<const char>(bytes)), "tiny").value();
  wire::Described message;
  message.model = "0123";
  message.name = "tiny";
  message.context_tokens = 256;
  message.header = {file->header().begin(), file->header().end()};
  return message;
}

wire::Health two_workers() {
  wire::Health health;
  health.workers.resize(2);
  health.workers[0].endpoint = "10.0.0.1:7/worker";
  health.workers[1].endpoint = "10.0.0.2:7/worker";
  for (auto& worker : health.workers) worker.model = "0123";
  return health;
}

struct Rig {
  ManualClock clock;
  Questions outbox;
  ModelCatalogue models;
  ModelMetrics metrics;
  ModelSeeker seeker;
  explicit Rig(std::vector<std::string> names = {})
      : seeker(clock, outbox, models, metrics, {"me/gateway", std::move(names)}) {}
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_worker_is_asked_and_its_answer_becomes_the_model) {
  Rig rig;
  rig.seeker.on_health({});
  BOOST_TEST(rig.outbox.asked.empty());
  rig.seeker.on_health(two_workers());
  rig.seeker.on_described(described());
  BOOST_REQUIRE(rig.models.size() == 1U);
  const ServedModel& model = rig.models.at(0).served();
  BOOST_TEST(model.name == "tiny");
  BOOST_TEST(model.context_tokens == 256U);
  BOOST_TEST((model.chat_template != nullptr));
  BOOST_TEST(model.tokenizer.encode(TextPiece{"hello", false}).ok());
  BOOST_TEST(rig.metrics.serialize().find("model_name=\"tiny\"") != std::string::npos);
  rig.seeker.on_health(two_workers());
  BOOST_TEST(rig.outbox.asked == (std::vector<std::string>{"10.0.0.1:7/model"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_model_is_served_under_the_name_that_was_asked_for) {
  Rig rig({"mine", "also mine"});
  rig.seeker.on_health(two_workers());
  rig.seeker.on_described(described());
  BOOST_REQUIRE(rig.models.find("mine") != nullptr && rig.models.find("also mine") != nullptr);
  BOOST_TEST(rig.models.find("also mine")->served().root == "mine");
  BOOST_TEST(rig.models.find("tiny") == nullptr);
}

BOOST_AUTO_TEST_CASE(without_an_answer_the_next_worker_is_asked_after_a_while) {
  Rig rig;
  rig.seeker.on_health(two_workers());
  rig.seeker.on_health(two_workers());
  BOOST_TEST(rig.outbox.asked.size() == 1U);
  rig.clock.advance(std::chrono::seconds(4));
  rig.seeker.on_health(two_workers());
  BOOST_TEST(rig.outbox.asked == (std::vector<std::string>{"10.0.0.1:7/model", "10.0.0.2:7/model"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_answer_that_nobody_asked_for_is_dropped) {
  Rig rig;
  rig.seeker.on_described(described());
  BOOST_TEST(rig.models.empty());
}

BOOST_AUTO_TEST_CASE(a_damaged_answer_is_refused_and_asked_for_anew) {
  Rig rig;
  rig.seeker.on_health(two_workers());
  wire::Described damaged = described();
  damaged.header.resize(damaged.header.size() / 2);
  rig.seeker.on_described(damaged);
  BOOST_TEST(rig.models.empty());
  for (const auto break_it : {+[](wire::Described& m) { m.name.clear(); },
                              +[](wire::Described& m) { m.context_tokens = 0; },
                              +[](wire::Described& m) { m.header.clear(); }}) {
    wire::Described message = described();
    break_it(message);
    BOOST_TEST(!DescribedModel::make(std::move(message), {}).ok());
  }
  rig.seeker.on_health(two_workers());
  rig.seeker.on_described(described());
  BOOST_TEST(rig.models.size() == 1U);
}

BOOST_AUTO_TEST_CASE(each_model_is_asked_for_once_and_has_the_names_that_its_worker_gives) {
  Rig rig;
  wire::Health health = two_workers();
  health.workers[1].model = "4567";
  wire::WorkerStatus prefill;
  prefill.endpoint = "10.0.0.3:7/worker";
  prefill.role = wire::Role::kPrefill;
  prefill.model = "89ab";
  health.workers.push_back(prefill);  // nobody decodes that
  rig.seeker.on_health(health);
  BOOST_TEST(rig.outbox.asked == (std::vector<std::string>{"10.0.0.1:7/model", "10.0.0.2:7/model"}),
             boost::test_tools::per_element());
  wire::Described first = described();
  first.served_names = {"smol", "chat"};
  rig.seeker.on_described(first);
  wire::Described second = described();
  second.model = "4567";
  rig.seeker.on_described(second);
  BOOST_REQUIRE(rig.models.size() == 3U);
  BOOST_TEST(rig.models.find("chat")->served().digest == "0123");
  BOOST_TEST(rig.models.find("chat")->served().root == "smol");
  BOOST_TEST(rig.models.find("tiny")->served().digest == "4567");
  const std::string page = rig.metrics.serialize();
  BOOST_TEST(page.find("model_name=\"smol\"") != std::string::npos);
  BOOST_TEST(page.find("model_name=\"tiny\"") != std::string::npos);
  rig.seeker.on_health(health);
  BOOST_TEST(rig.outbox.asked.size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_name_belongs_to_the_model_that_had_it_first_and_the_others_worker_is_told) {
  Rig rig;
  wire::Health health = two_workers();
  health.workers[1].model = "4567";
  rig.seeker.on_health(health);
  rig.seeker.on_described(described());
  wire::Described second = described();
  second.model = "4567";
  second.served_names = {"tiny", "other"};
  rig.seeker.on_described(second);
  BOOST_TEST(rig.models.find("tiny")->served().digest == "0123");
  BOOST_TEST(rig.models.find("other")->served().digest == "4567");
  rig.seeker.on_health(health);
  rig.seeker.on_health(health);
  BOOST_REQUIRE(rig.outbox.refusals.size() == 1U);  // once in each life
  BOOST_TEST(rig.outbox.refusals[0].find("10.0.0.2:7/worker: ") == 0U);
  BOOST_TEST(rig.outbox.refusals[0].find("\"tiny\"") != std::string::npos);
  health.workers[1].incarnation = 2;
  rig.seeker.on_health(health);
  BOOST_TEST(rig.outbox.refusals.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
