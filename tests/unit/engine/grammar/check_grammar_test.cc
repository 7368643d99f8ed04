#include "engine/grammar/check_grammar.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "engine/grammar/limits.h"

namespace troupe {
namespace {

Status checked(GrammarKind kind, const std::string& text) {
  return check_grammar({kind, text});
}
Status schema(const std::string& text) {
  return checked(GrammarKind::kJsonSchema, text);
}
std::string in_property(const std::string& inner) {
  return R"({"type":"object","properties":{"a":)" + inner + "}}";
}
std::string nested(int depth) {
  std::string text = "{}";
  for (int i = 0; i < depth; ++i) text = R"({"type":"array","items":)" + text + "}";
  return text;
}

BOOST_AUTO_TEST_SUITE(check_grammar_suite)

BOOST_AUTO_TEST_CASE(supported_keywords_are_accepted) {
  for (const char* text :
       {"true",
        "{}",
        R"({"type":"object"})",
        R"({"type":["string","null"]})",
        R"({"title":"t","description":"d","default":1,"examples":[1],"$comment":"c"})",
        R"({"type":"string","minLength":1,"maxLength":5})",
        R"({"pattern":"^a+$"})",
        R"({"type":"string","format":"date-time"})",
        R"({"minimum":0.5,"exclusiveMaximum":2})",
        R"({"type":"integer","minimum":0,"maximum":9000000000})",
        R"({"type":"integer","minimum":-9223372036854775808})",
        R"({"type":"integer","minimum":1e3})",
        R"({"type":"integer","minimum":0.0})",
        R"({"type":"integer","multipleOf":7})",
        R"({"type":"integer","multipleOf":500,"minimum":0,"maximum":10000})",
        R"({"enum":[1,"a",null,{"b":[true]}]})",
        R"({"const":3,"type":"integer"})",
        R"({"type":"string","enum":["a","b"]})",
        R"({"anyOf":[{"type":"null"},{"const":1}]})",
        R"({"oneOf":[{"type":"string"},{"type":"number"}]})",
        R"({"allOf":[{"type":"string"}],"title":"x"})",
        R"({"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3})",
        R"({"prefixItems":[{"type":"string"}],"items":false,"minItems":1})",
        R"({"uniqueItems":false,"type":"array"})",
        R"({"properties":{"a":{}},"required":["a"],"additionalProperties":false})",
        R"({"type":"object","additionalProperties":{"type":"integer"},"maxProperties":3})",
        R"({"type":"object","properties":{"n":{"$ref":"#"}}})",
        R"({"$defs":{"a":{"type":"string"}},"$ref":"#/$defs/a"})",
        R"({"definitions":{"a/b":{"type":"string"}},"$ref":"#/definitions/a~1b"})"}) {
    const Status status = schema(text);
    BOOST_TEST(status.ok(), text << ": " << status.message());
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_refused_by_name_with_its_place) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"not":{}})", "not"},
      {R"({"if":{}})", "if"},
      {R"({"type":"array","uniqueItems":true})", "uniqueItems"},
      {R"({"type":"array","contains":{}})", "contains"},
      {R"({"patternProperties":{}})", "patternProperties"},
      {R"({"propertyNames":{}})", "propertyNames"},
      {R"({"dependentRequired":{}})", "dependentRequired"},
      {R"({"unevaluatedProperties":false})", "unevaluatedProperties"},
      {R"({"nullable":true})", "nullable"},
      {R"({"$dynamicRef":"#a"})", "$dynamicRef"},
      {R"({"typ":"string"})", "typ"},
      {R"({"type":"string","format":"phone"})", "format"},
      {R"({"type":"string","pattern":"a","minLength":2})", "minLength"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "pattern"},
      {R"({"type":"number","multipleOf":0.1})", "multipleOf"},
      {R"({"type":"integer","multipleOf":7,"minimum":0})", "multipleOf"},
      {R"({"allOf":[{},{}]})", "allOf"},
      {R"({"oneOf":[{"type":"string"},{"minLength":2,"type":"string"}]})", "oneOf"},
      {R"({"anyOf":[{}],"minimum":3})", "minimum"},
      {R"({"enum":["a"],"maxLength":3})", "maxLength"},
      {R"({"$ref":"#/x"})", "$ref"},
      {R"({"$ref":"https://example.org/s.json"})", "$ref"},
      {R"({"items":[{}]})", "items"},
      {R"({"exclusiveMinimum":true,"minimum":1,"type":"number"})", "exclusiveMinimum"},
      {R"({"properties":{"b":{}},"minProperties":1})", "minProperties"},
      {R"({"type":"object","minProperties":2})", "minProperties"}};
  for (const auto& [text, keyword] : cases) {
    const Status status = schema(in_property(text));
    BOOST_TEST_CONTEXT(text << " -> " << status.message()) {
      BOOST_TEST((status.code() == StatusCode::kInvalidArgument));
      BOOST_TEST(status.param().starts_with("properties.a"));
      BOOST_TEST(status.message().find(keyword) != std::string::npos);
      BOOST_TEST(status.message().find("$.properties.a") != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_nothing_can_satisfy_is_refused) {
  const char* cases[] = {"false",
                         R"({"type":[]})",
                         R"({"enum":[]})",
                         R"({"type":"string","enum":[1,2]})",
                         R"({"const":"a","type":"integer"})",
                         R"({"type":"integer","minimum":3,"maximum":2})",
                         R"({"type":"integer","exclusiveMinimum":2,"exclusiveMaximum":3})",
                         R"({"type":"number","minimum":3,"maximum":2})",
                         R"({"type":"number","exclusiveMinimum":1,"maximum":1})",
                         R"({"type":"integer","minimum":0.2,"maximum":0.8})",
                         R"({"type":"integer","multipleOf":100,"minimum":1,"maximum":99})",
                         R"({"type":"string","minLength":3,"maxLength":2})",
                         R"({"type":"array","minItems":3,"maxItems":2})",
                         R"({"prefixItems":[{}],"items":false,"minItems":2})",
                         R"({"required":["a"],"additionalProperties":false,"type":"object"})",
                         R"({"properties":{"a":{},"b":{}},"required":["a","b"],"maxProperties":1})",
                         R"({"$ref":"#"})",
                         R"({"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},
      "$ref":"#/$defs/a"})",
                         R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})",
                         R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                         R"({"type":"array","items":{"$ref":"#"},"minItems":1})"};
  for (const char* text : cases) {
    const Status status = schema(text);
    BOOST_TEST((status.code() == StatusCode::kInvalidArgument), text << status.message());
    BOOST_TEST(!status.message().empty());
  }
}

BOOST_AUTO_TEST_CASE(bounds_that_fit_no_type_are_refused_by_name) {
  const std::string large = "1180591620717411303424";  // 2^70
  for (const char* name : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
    const std::string text = R"({"type":"integer",")" + std::string(name) + "\":" + large + "}";
    const Status status = schema(in_property(text));
    BOOST_TEST(status.param() == "properties.a." + std::string(name), status.message());
  }
  BOOST_TEST(!schema(R"({"type":"number","minimum":1e30})").ok());
  BOOST_TEST(!schema(R"({"type":"integer","exclusiveMinimum":9223372036854775807})").ok());
  BOOST_TEST(!schema(R"({"type":"string","maxLength":-1})").ok());
  BOOST_TEST(!schema(R"({"type":"string","maxLength":1.5})").ok());
  BOOST_TEST(!schema(R"({"type":"array","maxItems":1000000})").ok());
}

BOOST_AUTO_TEST_CASE(size_and_depth_are_bounded) {
  BOOST_TEST(schema(nested(60)).ok());
  const Status deep = schema(nested(100));
  BOOST_TEST(deep.message().find("deep") != std::string::npos);
  BOOST_TEST(!schema(nested(5000)).ok());
  BOOST_TEST(!schema(std::string(100'000, '[')).ok());
  BOOST_TEST(!schema("{\"title\":\"" + std::string(300'000, 'x') + "\"}").ok());
  std::string values = "{\"enum\":[0";
  for (int i = 1; i < 6000; ++i) values += "," + std::to_string(i);
  BOOST_TEST(!schema(values + "]}").ok());
  BOOST_TEST(!schema(R"({"type":"string","pattern":")" + std::string(50'000, '(') + "\"}").ok());
  // Each level costs what the one below does, as often as it repeats.
  BOOST_TEST(!checked(GrammarKind::kRegex, "((a{99}){99}){99}").ok());
}

BOOST_AUTO_TEST_CASE(a_long_chain_of_references_is_followed_without_recursion) {
  std::string text = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 1500; ++i) {
    text += "\"d" + std::to_string(i) + R"(":{"type":"array","items":{"$ref":"#/$defs/d)" +
            std::to_string(i + 1) + "\"}},";
  }
  text += R"("d1500":{"type":"string"}}})";
  const Status status = schema(text);
  BOOST_TEST(status.ok(), status.message());
}

BOOST_AUTO_TEST_CASE(a_repetition_that_can_be_read_in_endless_ways_is_refused) {
  for (const char* pattern : {"(a*)*", "(a?|b)+", "((a|ab|b)*(x|y)?)*z"}) {
    const Status status = checked(GrammarKind::kRegex, pattern);
    BOOST_TEST(status.message().find("empty") != std::string::npos, pattern);
  }
  BOOST_TEST(checked(GrammarKind::kRegex, "(a+,)*b").ok());
}

BOOST_AUTO_TEST_CASE(choices_are_distinct_strings) {
  BOOST_TEST(checked(GrammarKind::kChoice, R"(["a","b"])").ok());
  for (const char* text : {"[]", "{}", "[1]", R"([""])", R"(["\u0000"])", "x"})
    BOOST_TEST(!checked(GrammarKind::kChoice, text).ok(), text);
  BOOST_TEST(checked(GrammarKind::kChoice, R"(["a",2])").param() == "[1]");
}

BOOST_AUTO_TEST_CASE(a_clients_grammar_is_read_whole) {
  BOOST_TEST(
      checked(GrammarKind::kEbnf, "root ::= a | [^a-z\\n]{2,} # note\na ::= \"x\\n\"\n  \"y\"?")
          .ok());
  const std::pair<const char*, const char*> cases[] = {
      {"a ::= \"x\"", "'root'"},
      {"root ::= b", "'b'"},
      {"root ::= \"x\"\nroot ::= \"y\"", "twice"},
      {"root ::= (\"x\"", "not closed"},
      {"root ::= \"x", "not closed"},
      {"root ::= root \"x\" | \"y\"", "leads back"},
      {"root ::= \"x\" root", "no finite"},
      {"root ::= \"a\"{3,2}", "wrong order"},
      {"root = \"x\"", "::="},
      {"root ::= \"\\q\"", "not known"}};
  for (const auto& [text, word] : cases) {
    const Status status = checked(GrammarKind::kEbnf, text);
    BOOST_TEST_CONTEXT(text << " -> " << status.message()) {
      BOOST_TEST(status.message().find(word) != std::string::npos);
    }
  }
  BOOST_TEST(!checked(GrammarKind::kEbnf, "root ::= " + std::string(50'000, '(')).ok());
}

BOOST_AUTO_TEST_CASE(demands_within_a_structural_tag_are_checked_in_their_place) {
  const auto tag = [](const std::string& content) {
    return checked(GrammarKind::kStructuralTag,
                   R"({"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f"],
                   "tags":[{"type":"tag","begin":"<f>","content":)" +
                       content + R"(,"end":"</f>"}]}})");
  };
  BOOST_TEST(tag(R"({"type":"json_schema","json_schema":{"type":"object"}})").ok());
  BOOST_TEST(tag(R"({"type":"regex","pattern":"a+"})").ok());
  const Status bad = tag(R"({"type":"json_schema","json_schema":{"not":{}}})");
  BOOST_TEST(bad.param() == "format.tags[0].content.json_schema.not", bad.message());
  BOOST_TEST(!tag(R"({"type":"lark"})").ok());
  BOOST_TEST(!checked(GrammarKind::kStructuralTag, "{}").ok());
  BOOST_TEST(checked(GrammarKind::kStructuralTag,
                     R"({"structures":[{"begin":"<f>","schema":{},"end":"</f>"}],
                     "triggers":["<f"]})")
                 .ok());
}

BOOST_AUTO_TEST_CASE(an_error_does_not_repeat_all_that_the_client_wrote) {
  std::string text = R"({"not":{}})";
  for (int i = 0; i < 40; ++i) {
    std::string name;
    for (int k = 0; k < 500; ++k) name += "é";
    text = R"({"type":"object","properties":{")" + name + R"(":)" + text + "}}";
  }
  const Status status = schema(text);
  BOOST_TEST((status.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(status.message().size() < 1000U);
  BOOST_TEST(status.param().size() < 500U);
  const Status unknown = checked(GrammarKind::kEbnf, "root ::= " + std::string(10'000, 'x'));
  BOOST_TEST(unknown.message().size() < 500U);
}

BOOST_AUTO_TEST_CASE(an_empty_demand_is_no_demand) {
  BOOST_TEST(check_grammar({}).ok());
  BOOST_TEST(checked(GrammarKind::kJsonObject, "").ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
