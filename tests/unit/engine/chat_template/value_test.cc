#include "engine/chat_template/value.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/chat_template/value_json.h"
#include "tests/unit/engine/chat_template/render_support.h"

namespace {

using namespace troupe;
using Json = nlohmann::ordered_json;
using Kind = TemplateValue::Kind;

}  // namespace

BOOST_AUTO_TEST_SUITE(chat_template_value)

BOOST_AUTO_TEST_CASE(json_becomes_values_in_its_own_order) {
  const Json json = Json::parse(R"({"z":1,"a":[true,null,1.5,"t"],"m":{"k":-2}})");
  const Result<TemplateValue> value = template_value_from_json(json);
  BOOST_REQUIRE(value.ok());
  BOOST_CHECK_EQUAL(chat_template_test::text_of("{{ v }}", {{"v", value.value()}}),
                    "{'z': 1, 'a': [True, None, 1.5, 't'], 'm': {'k': -2}}");
  BOOST_CHECK_EQUAL(value.value().depth(), 2u);
  BOOST_CHECK(value.value().find("a")->as_list()[3].as_text().runs()[0].origin ==
              TextOrigin::kData);
}

BOOST_AUTO_TEST_CASE(json_integers_outside_int64_become_floats) {
  const auto value = template_value_from_json(Json::parse("[18446744073709551615]"));
  BOOST_REQUIRE(value.ok());
  BOOST_CHECK(value.value().as_list()[0].is(Kind::kFloat));
}

BOOST_AUTO_TEST_CASE(deep_json_is_refused_by_name) {
  Json json = 1;
  for (int i = 0; i < 101; ++i) json = Json::array({json});
  const auto value = template_value_from_json(json);
  BOOST_REQUIRE(!value.ok());
  BOOST_CHECK(value.status().message().find("value_depth_max") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_key_given_twice_keeps_its_place_and_its_last_value) {
  const TemplateValue dict = TemplateValue::dict({{"a", TemplateValue::integer(1)},
                                                  {"b", TemplateValue::integer(2)},
                                                  {"a", TemplateValue::integer(3)}});
  BOOST_REQUIRE_EQUAL(dict.as_dict().size(), 2u);
  BOOST_CHECK_EQUAL(dict.as_dict()[0].second.as_int(), 3);
}

BOOST_AUTO_TEST_CASE(one_template_renders_on_many_threads_at_once) {
  const Result<ChatTemplate> compiled = ChatTemplate::compile(
      "{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n "
      "}}");
  BOOST_REQUIRE(compiled.ok());
  const TemplateValue context = TemplateValue::dict(
      {{"l", TemplateValue::list(TemplateValue::List(100, TemplateValue::integer(2)))}});
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto pieces = compiled.value().render(context, 0);
        text = pieces.ok() ? chat_template_test::joined(pieces.value()) : "failed";
        if (text != "200") return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) BOOST_CHECK_EQUAL(text, "200");
}

BOOST_AUTO_TEST_SUITE_END()
