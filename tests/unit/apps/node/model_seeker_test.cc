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
    const auto* describe = std::get_if<wire::Describe>(&message);
    BOOST_REQUIRE(describe != nullptr);
    BOOST_TEST(describe->reply_to == "me/gateway");
    asked.emplace_back(endpoint);
    return {};
  }
  std::vector<std::string> asked;
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
  return health;
}

struct Rig {
  ManualClock clock;
  Questions outbox;
  ModelCatalogue models;
  ServingMetrics metrics{""};
  ModelSeeker seeker;
  explicit Rig(const std::string& name = "")
      : seeker(clock, outbox, models, metrics, {"me/gateway", name}) {}
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
  Rig rig("mine");
  rig.seeker.on_health(two_workers());
  rig.seeker.on_described(described());
  BOOST_TEST(rig.models.find("mine") != nullptr);
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

BOOST_AUTO_TEST_SUITE_END()
