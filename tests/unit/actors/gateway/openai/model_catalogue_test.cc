#include "actors/gateway/openai/model_catalogue.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>

#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/openai/service_bodies.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;

struct HealthyAlways final : HealthSource {
  [[nodiscard]] Status health() const override { return ok_status(); }
};

struct Fixture {
  TinyModel tiny;
  ModelCatalogue models;

  Status add(const std::string& name, uint32_t context = kTinyContext) {
    return models.add({name, context, 1, tiny.tokenizer(), nullptr});
  }
  Result<GenerationBody> complete(const std::string& model) {
    return parse_completions_body(model + R"("prompt":"x"})", models.rules());
  }
};

BOOST_FIXTURE_TEST_CASE(an_empty_catalogue_lists_nothing_and_refuses_for_now, Fixture) {
  BOOST_TEST(format_model_list(models, HealthyAlways()) == R"({"object":"list","data":[]})");
  const Status refused = complete(R"({"model":"a",)").status();
  BOOST_TEST((refused.code() == StatusCode::kUnavailable));
  BOOST_TEST(refused.message().find("no worker has joined yet") != std::string::npos);
  BOOST_TEST(
      (answer_detokenize(R"({"tokens":[1]})", models).status().code() == StatusCode::kUnavailable));
  // What is wrong in any case is told so.
  BOOST_TEST((complete(R"({"modle":"a",)").status().code() == StatusCode::kInvalidArgument));
}

BOOST_FIXTURE_TEST_CASE(each_body_gets_the_model_that_it_names, Fixture) {
  BOOST_REQUIRE(add("a").ok());
  BOOST_REQUIRE(add("b", 77).ok());
  BOOST_TEST(complete(R"({"model":"a",)")->model == 0U);
  const auto body = complete(R"({"model":"b",)");
  BOOST_REQUIRE(body.ok());
  BOOST_TEST(models.at(body->model).served().context_tokens == 77U);
  BOOST_TEST(models.find("b") == &models.at(1));
  BOOST_TEST(models.find("c") == nullptr);
  BOOST_TEST(complete(R"({"model":"c",)").status().message() ==
             R"(the model "c" does not exist here; this server has "a", "b")");
  BOOST_TEST(complete("{").status().message() == R"(model is missing; send one of "a", "b")");
  // With two of them, nobody can know which tokenizer is meant.
  BOOST_TEST(answer_tokenize(R"({"prompt":"x"})", models, 0).status().param() == "model");
}

BOOST_FIXTURE_TEST_CASE(models_that_are_there_stay_where_they_are, Fixture) {
  BOOST_REQUIRE(add("a").ok());
  const CataloguedModel* first = &models.at(0);
  const std::string_view name = models.rules()[0].model_name;
  for (size_t i = 1; i < kCatalogueModelsMax; ++i) BOOST_REQUIRE(add(std::to_string(i)).ok());
  BOOST_TEST(&models.at(0) == first);
  BOOST_TEST(name == "a");
  BOOST_TEST((add("one too many").code() == StatusCode::kResourceExhausted));
  BOOST_TEST(complete(R"({"model":"?",)").status().message().find("and 60 more") !=
             std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_name_is_given_once_and_not_empty, Fixture) {
  BOOST_REQUIRE(add("a").ok());
  BOOST_TEST((add("a").code() == StatusCode::kInvalidArgument));
  BOOST_TEST((add("").code() == StatusCode::kInvalidArgument));
  BOOST_TEST(models.size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(the_owner_lives_as_long_as_the_catalogue, Fixture) {
  const auto owner = std::make_shared<int>(1);
  {
    ModelCatalogue catalogue;
    BOOST_REQUIRE(catalogue.add({"a", kTinyContext, 1, tiny.tokenizer(), nullptr}, owner).ok());
    BOOST_TEST(owner.use_count() == 2);
  }
  BOOST_TEST(owner.use_count() == 1);
}

}  // namespace
}  // namespace troupe
