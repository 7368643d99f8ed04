// Bodies that must be refused, and how.

#include <array>
#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <vector>

#include "actors/gateway/openai/api_error.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/openai/request_limits.h"
#include "engine/sample/validate.h"

namespace troupe {
namespace {

constexpr std::array<RequestRules, 1> kRules = {{{"m", 1000, 8192}}};

struct BadBody {
  std::string body;
  uint32_t status;
  std::string param;
  std::string code;
  std::string says = {};  // part of the message
};

const char* const kInvalid = "invalid_value";
const char* const kUnsupported = "unsupported_parameter";

// The fields follow a valid start: {"model":"m","messages":[...] or "prompt":"x", <fields>}
std::string chat(const std::string& fields) {
  return R"({"model":"m","messages":[{"role":"user","content":"x"}],)" + fields + "}";
}
std::string completion(const std::string& fields) {
  return R"({"model":"m","prompt":"x",)" + fields + "}";
}
std::string messages(const std::string& value) {
  return R"({"model":"m","messages":)" + value + "}";
}
std::string message(const std::string& value) {
  return messages("[" + value + "]");
}

std::string repeat(const std::string& text, size_t times, const char* separator = "") {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += (i > 0 ? separator : "") + text;
  return out;
}

template <class Parse>
void check_all(const std::vector<BadBody>& table, Parse parse) {
  for (const BadBody& bad : table) {
    const std::string shown = bad.body.substr(0, 200);
    const auto result = parse(bad.body, kRules);
    if (result.ok()) {
      BOOST_ERROR("accepted: " + shown);
      continue;
    }
    const ApiError error = to_api_error(result.status());
    BOOST_TEST(error.http_status == bad.status, shown << " -> " << error.http_status);
    BOOST_TEST(error.param == bad.param, shown << " -> " << error.param);
    BOOST_TEST(error.code == bad.code, shown << " -> " << error.code);
    BOOST_TEST(error.message.find(bad.says) != std::string::npos, shown << " -> " << error.message);
    BOOST_TEST(format_error(error).size() < 4096U, shown);
  }
}

const std::vector<BadBody>& broken_json() {
  static const std::vector<BadBody> table = {
      {"", 400, "", kInvalid, "empty"},
      {"{", 400, "", kInvalid, "not valid JSON"},
      {"}", 400, "", kInvalid},
      {"null", 400, "", kInvalid, "must be a JSON object"},
      {"[]", 400, "", kInvalid, "must be a JSON object"},
      {"\"text\"", 400, "", kInvalid},
      {"42", 400, "", kInvalid},
      {"{}{}", 400, "", kInvalid},
      {"{\"model\":\"m\",}", 400, "", kInvalid},
      {"{'model':'m'}", 400, "", kInvalid},
      {"{\"model\":\"m\"} trailing", 400, "", kInvalid},
      {"{\"model\":\"m\xC4\xE3\"}", 400, "model", kInvalid, "UTF-8"},
      {"{\"\xC0\xAF\":1}", 400, "", kInvalid, "UTF-8"},
      {"{\"stop\":\"\xFF\"}", 400, "stop", kInvalid, "UTF-8"},
      {"{\"model\":\"\xED\xA0\x80\"}", 400, "model", kInvalid, "UTF-8"},
      {"{\"model\":\"\\ud800\"}", 400, "model", kInvalid, "surrogate"},
      {"{\"model\":\"\\udc00x\"}", 400, "model", kInvalid, "surrogate"},
      {"{\"model\":\"\\u12\"}", 400, "model", kInvalid},
      {std::string("{\"model\":\"\x01\"}"), 400, "model", kInvalid},
      {std::string(100'000, '['), 400, std::string("[0]"), kInvalid},
      {"{\"model\":\"m\",\"model\":\"m\"}", 400, "model", kInvalid, "twice"},
      {"{\"model\":\"m\",\"temperature\":1e400}", 400, "temperature", kInvalid, "[0, 2]"},
      {"{\"model\":\"m\",\"temperature\":NaN}", 400, "temperature", kInvalid, "[0, 2]"},
      {"{\"model\":\"m\",\"top_p\":-Infinity}", 400, "top_p", kInvalid, "(0, 1]"},
      {"{\"model\":\"m\",\"max_tokens\":1e999}", 400, "max_tokens", kInvalid, "integer"},
  };
  return table;
}

BOOST_AUTO_TEST_CASE(broken_json_is_refused_with_the_place_of_the_fault) {
  std::vector<BadBody> table = broken_json();
  // Sixty-four brackets are a path of sixty-four indices.
  for (BadBody& bad : table) {
    if (bad.body.starts_with("[[")) bad.param = repeat("[0]", kJsonDepthMax);
  }
  check_all(table, parse_chat_body);
}

BOOST_AUTO_TEST_CASE(models_and_unknown_fields_are_refused_by_name) {
  check_all(
      {
          {R"({"messages":[]})", 400, "model", kInvalid, "missing"},
          {R"({"model":null,"messages":[]})", 400, "model", kInvalid},
          {R"({"model":7,"messages":[]})", 400, "model", kInvalid, "string"},
          {R"({"model":"gpt-4","messages":[]})", 404, "model", "model_not_found", "gpt-4"},
          {R"({"model":"","messages":[]})", 404, "model", "model_not_found"},
          {chat(R"("max_tokns":9)"), 400, "max_tokns", kInvalid, "did you mean max_tokens?"},
          {chat(R"("temprature":1)"), 400, "temprature", kInvalid, "temperature"},
          {chat(R"("stopp":"x")"), 400, "stopp", kInvalid, "did you mean stop?"},
          {chat(R"("zzzzzzzz":1)"), 400, "zzzzzzzz", kInvalid, "not a known field"},
          {chat("\"" + std::string(5000, 'k') + "\":1"), 400, std::string(61, 'k') + "...",
           kInvalid},
          {chat(R"("functions":[{"name":"f"}])"), 400, "functions", kUnsupported},
          {chat(R"("audio":{"voice":"x"})"), 400, "audio", kUnsupported},
          {chat(R"("response_format":{"type":"yaml"})"), 400, "response_format.type", kInvalid,
           "json_object"},
          {chat(R"("response_format":{"type":"json_object","schema":{}})"), 400,
           "response_format.schema", kInvalid},
          {chat(R"("response_format":{"type":"json_schema"})"), 400, "response_format.json_schema",
           kInvalid},
          {chat(R"("response_format":{"type":"json_schema","json_schema":{"schema":{}}})"), 400,
           "response_format.json_schema.name", kInvalid},
          {chat(R"x("guided_regex":"(?=a)")x"), 400, "guided_regex", kInvalid, "lookahead"},
          {chat(R"("guided_regex":"a","guided_choice":["b"])"), 400, "guided_choice", kInvalid,
           "send one of them"},
          {chat(R"("structured_outputs":{"jsn":{}})"), 400, "structured_outputs.jsn", kInvalid,
           "json"},
          {chat(R"("structured_outputs":{})"), 400, "structured_outputs", kInvalid},
          {chat(R"("response_format":"json")"), 400, "response_format", kInvalid},
          {chat(R"("response_format":{})"), 400, "response_format", kInvalid},
          {chat(R"("modalities":["audio"])"), 400, "modalities", kUnsupported},
          {chat(R"("priority":3)"), 400, "priority", kUnsupported},
          {chat(R"("skip_special_tokens":false)"), 400, "skip_special_tokens", kUnsupported},
          {chat(R"("stream_reasoning":false)"), 400, "stream_reasoning", kUnsupported, "true"},
          {chat(R"("no_stop_trim":true)"), 400, "no_stop_trim", kUnsupported},
          {chat(R"("reasoning_effort":"hgih")"), 400, "reasoning_effort", kInvalid, "medium"},
          {chat(R"("reasoning_effort":5)"), 400, "reasoning_effort", kInvalid},
          {chat(R"("reasoning_effort":"low","chat_template_kwargs":{"reasoning_effort":"low"})"),
           400, "reasoning_effort", kInvalid, "in one of these places"},
          {chat(R"("allowed_token_ids":[])"), 400, "allowed_token_ids", kInvalid, "at least one"},
          {chat(R"("allowed_token_ids":[-1])"), 400, "allowed_token_ids[0]", kInvalid},
          {chat(R"("allowed_token_ids":[1,1000000])"), 400, "allowed_token_ids[1]", kInvalid},
          {chat(R"("bad_words":"x")"), 400, "bad_words", kInvalid, "array"},
          {chat(R"("bad_words":["a",""])"), 400, "bad_words[1]", kInvalid},
          {chat(R"("bad_words":[" \n"])"), 400, "bad_words[0]", kInvalid, "white space"},
          {chat(R"("chat_template":"x")"), 400, "chat_template", kUnsupported,
           "--trust-request-chat-template"},
          {chat(R"("documents":[{"text":"x"}])"), 400, "documents", kUnsupported},
          {chat(R"("chat_template_kwargs":[1])"), 400, "chat_template_kwargs", kInvalid, "object"},
          {chat(R"("chat_template_kwargs":{"messages":[]})"), 400, "chat_template_kwargs.messages",
           kInvalid, "set by the server"},
          {chat(R"("chat_template_kwargs":{"bos_token":"x"})"), 400,
           "chat_template_kwargs.bos_token", kInvalid},
          {chat(R"("add_generation_prompt":1)"), 400, "add_generation_prompt", kInvalid},
          {chat(R"("add_generation_prompt":true,"continue_final_message":true)"), 400,
           "add_generation_prompt", kInvalid, "continue_final_message"},
          {chat(R"("echo":true)"), 400, "echo", kUnsupported},
          {chat(R"("prompt":"x")"), 400, "prompt", kInvalid},
      },
      parse_chat_body);
}

BOOST_AUTO_TEST_CASE(sampling_parameters_are_refused_outside_their_range_or_type) {
  std::vector<BadBody> table = {
      {chat(R"("temperature":-0.1)"), 400, "temperature", kInvalid, "[0, 2]; got -0.1"},
      {chat(R"("temperature":2.5)"), 400, "temperature", kInvalid, "[0, 2]; got 2.5"},
      {chat(R"("temperature":"0.7")"), 400, "temperature", kInvalid, "got \"0.7\""},
      {chat(R"("temperature":true)"), 400, "temperature", kInvalid},
      {chat(R"("temperature":[1])"), 400, "temperature", kInvalid, "got an array"},
      {chat(R"("top_p":0)"), 400, "top_p", kInvalid, "(0, 1]; got 0"},
      {chat(R"("top_p":1.1)"), 400, "top_p", kInvalid},
      {chat(R"("top_p":1e-60)"), 400, "top_p", kInvalid, "(0, 1]"},
      {chat(R"("top_p":-1)"), 400, "top_p", kInvalid},
      {chat(R"("top_k":-2)"), 400, "top_k", kInvalid},
      {chat(R"("top_k":1.5)"), 400, "top_k", kInvalid, "integer"},
      {chat(R"("top_k":99999999999)"), 400, "top_k", kInvalid},
      {chat(R"("min_p":1.5)"), 400, "min_p", kInvalid},
      {chat(R"("min_p":-0.5)"), 400, "min_p", kInvalid},
      {chat(R"("repetition_penalty":0)"), 400, "repetition_penalty", kInvalid},
      {chat(R"("repetition_penalty":-1)"), 400, "repetition_penalty", kInvalid},
      {chat(R"("presence_penalty":2.1)"), 400, "presence_penalty", kInvalid},
      {chat(R"("frequency_penalty":-2.1)"), 400, "frequency_penalty", kInvalid},
      {chat(R"("seed":1.5)"), 400, "seed", kInvalid},
      {chat(R"("seed":"7")"), 400, "seed", kInvalid},
      {chat(R"("seed":1180591620717411303424)"), 400, "seed", kInvalid, "64 bits"},
      {chat(R"("n":0)"), 400, "n", kInvalid, "[1, 16]"},
      {chat(R"("n":17)"), 400, "n", kInvalid, "got 17"},
      {chat(R"("n":1000000000)"), 400, "n", kInvalid},
      {chat(R"("n":"2")"), 400, "n", kInvalid},
      {chat(R"("n":2.0)"), 400, "n", kInvalid},
      {chat(R"("max_tokens":0)"), 400, "max_tokens", kInvalid},
      {chat(R"("max_tokens":-1)"), 400, "max_tokens", kInvalid},
      {chat(R"("max_tokens":1.5)"), 400, "max_tokens", kInvalid},
      {chat(R"("max_tokens":"8")"), 400, "max_tokens", kInvalid},
      {chat(R"("max_tokens":1e30)"), 400, "max_tokens", kInvalid},
      {chat(R"("max_tokens":18446744073709551615)"), 400, "max_tokens", kInvalid},
      {chat(R"("max_completion_tokens":0)"), 400, "max_completion_tokens", kInvalid},
      {chat(R"("max_completion_tokens":9,"max_tokens":-1)"), 400, "max_tokens", kInvalid},
      {chat(R"("min_tokens":-1)"), 400, "min_tokens", kInvalid},
      {chat(R"("min_tokens":9,"max_tokens":8)"), 400, "min_tokens", kInvalid, "at most"},
      {chat(R"("ignore_eos":1)"), 400, "ignore_eos", kInvalid, "true or false"},
      {chat(R"("include_stop_str_in_output":"yes")"), 400, "include_stop_str_in_output", kInvalid},
      {chat(R"("logit_bias":[])"), 400, "logit_bias", kInvalid, "object"},
      {chat(R"("logit_bias":{"1000":5})"), 400, "logit_bias", kInvalid, "[0, 999]; got \"1000\""},
      {chat(R"("logit_bias":{"99999999":5})"), 400, "logit_bias", kInvalid, "99999999"},
      {chat(R"("logit_bias":{"99999999999999999999":5})"), 400, "logit_bias", kInvalid},
      {chat(R"("logit_bias":{"-1":5})"), 400, "logit_bias", kInvalid, "\"-1\""},
      {chat(R"("logit_bias":{"abc":5})"), 400, "logit_bias", kInvalid, "\"abc\""},
      {chat(R"("logit_bias":{"05":5})"), 400, "logit_bias", kInvalid},
      {chat(R"("logit_bias":{"":5})"), 400, "logit_bias", kInvalid},
      {chat(R"("logit_bias":{" 5":5})"), 400, "logit_bias", kInvalid},
      {chat(R"("logit_bias":{"5":101})"), 400, "logit_bias", kInvalid, "[-100, 100]; got 101"},
      {chat(R"("logit_bias":{"5":null})"), 400, "logit_bias", kInvalid, "got null"},
      {chat(R"("logit_bias":{"5":"1"})"), 400, "logit_bias", kInvalid},
      {chat(R"("stop_token_ids":5)"), 400, "stop_token_ids", kInvalid},
      {chat(R"("stop_token_ids":[1000])"), 400, "stop_token_ids[0]", kInvalid, "[0, 999]"},
      {chat(R"("stop_token_ids":[1,-1])"), 400, "stop_token_ids[1]", kInvalid},
      {chat(R"("stop_token_ids":["1"])"), 400, "stop_token_ids[0]", kInvalid},
      {chat("\"stop_token_ids\":[" + repeat("1", kStopTokenIdsMax + 1, ",") + "]"), 400,
       "stop_token_ids", kInvalid},
  };
  check_all(table, parse_chat_body);
}

BOOST_AUTO_TEST_CASE(stops_streams_and_logprobs_are_refused_by_rule) {
  check_all(
      {
          {chat(R"("stop":"")"), 400, "stop", kInvalid, "1 to 1024 bytes"},
          {chat(R"("stop":[""])"), 400, "stop[0]", kInvalid},
          {chat(R"("stop":["a","b","c","d","e"])"), 400, "stop", kInvalid, "at most 4"},
          {chat(R"("stop":[1])"), 400, "stop[0]", kInvalid, "got 1"},
          {chat(R"("stop":7)"), 400, "stop", kInvalid},
          {chat(R"("stop":{"a":1})"), 400, "stop", kInvalid},
          {chat("\"stop\":\"" + std::string(65536, 's') + "\""), 400, "stop", kInvalid},
          {chat(R"("stream":"true")"), 400, "stream", kInvalid},
          {chat(R"("stream":1)"), 400, "stream", kInvalid},
          {chat(R"("stream_options":{"include_usage":true})"), 400, "stream_options", kInvalid,
           "only allowed when stream"},
          {chat(R"("stream":false,"stream_options":{"include_usage":true})"), 400, "stream_options",
           kInvalid},
          {chat(R"("stream":true,"stream_options":[])"), 400, "stream_options", kInvalid},
          {chat(R"("stream":true,"stream_options":{"include_usage":"yes"})"), 400,
           "stream_options.include_usage", kInvalid},
          {chat(R"("stream":true,"stream_options":{"include_usag":true})"), 400,
           "stream_options.include_usag", kInvalid, "stream_options.include_usage?"},
          {chat(R"("logprobs":5)"), 400, "logprobs", kInvalid, "true or false"},
          {chat(R"("top_logprobs":5)"), 400, "top_logprobs", kInvalid, "needs logprobs"},
          {chat(R"("logprobs":false,"top_logprobs":5)"), 400, "top_logprobs", kInvalid},
          {chat(R"("logprobs":true,"top_logprobs":21)"), 400, "top_logprobs", kInvalid, "[0, 20]"},
          {chat(R"("logprobs":true,"top_logprobs":-1)"), 400, "top_logprobs", kInvalid},
          {chat(R"("cache_salt":"")"), 400, "cache_salt", kInvalid},
          {chat(R"("cache_salt":7)"), 400, "cache_salt", kInvalid},
          {chat("\"cache_salt\":\"" + std::string(257, 's') + "\""), 400, "cache_salt", kInvalid},
      },
      parse_chat_body);
}

BOOST_AUTO_TEST_CASE(conversations_are_refused_at_the_first_fault) {
  const std::string role = "messages[0].role";
  const std::string content = "messages[0].content";
  check_all(
      {
          {R"({"model":"m"})", 400, "messages", kInvalid, "missing"},
          {messages("[]"), 400, "messages", kInvalid, "at least one"},
          {messages("null"), 400, "messages", kInvalid},
          {messages("{}"), 400, "messages", kInvalid},
          {messages("\"hi\""), 400, "messages", kInvalid},
          {message("[]"), 400, "messages[0]", kInvalid, "object"},
          {message("null"), 400, "messages[0]", kInvalid},
          {message(R"({"role":"user"})"), 400, content, kInvalid, "missing"},
          {message(R"({"role":"user","content":null})"), 400, content, kInvalid},
          {message(R"({"role":"user","content":7})"), 400, content, kInvalid, "got 7"},
          {message(R"({"role":"user","content":{}})"), 400, content, kInvalid},
          {message(R"({"role":"user","content":[]})"), 400, content, kInvalid, "parts"},
          {message(R"({"role":"wizard","content":"x"})"), 400, role, kInvalid, "assistant"},
          {message(R"({"role":1,"content":"x"})"), 400, role, kInvalid, "got 1"},
          {message(R"({"role":null,"content":"x"})"), 400, role, kInvalid},
          {message(R"({"content":"x"})"), 400, role, kInvalid, "missing"},
          {messages(R"([{"role":"user","content":"x"},{"role":"User","content":"x"}])"), 400,
           "messages[1].role", kInvalid},
          {messages("[" + repeat(R"({"role":1})", 9000, ",") + "]"), 400, "messages", kInvalid,
           "9000"},
          {messages("[" + repeat(R"({"role":1})", 4000, ",") + "]"), 400, role, kInvalid},
          {message(R"({"role":"user","content":["x"]})"), 400, content + "[0]", kInvalid},
          {message(R"({"role":"user","content":[{}]})"), 400, content + "[0].type", kInvalid},
          {message(R"({"role":"user","content":[{"type":"text"}]})"), 400, content + "[0].text",
           kInvalid},
          {message(R"({"role":"user","content":[{"type":"text","text":1}]})"), 400,
           content + "[0].text", kInvalid},
          {message(R"({"role":"user","content":[{"type":"image_url","image_url":{}}]})"), 400,
           content + "[0].type", kUnsupported, "image_url"},
          {message(R"({"role":"user","content":"x","nmae":"y"})"), 400, "messages[0].nmae",
           kInvalid, "messages[0].name?"},
          {message(R"({"role":"user","content":"x","name":7})"), 400, "messages[0].name", kInvalid},
          {message(R"({"role":"tool","content":"42"})"), 400, "messages[0].tool_call_id", kInvalid,
           "missing"},
          {message(R"({"role":"tool","content":"42","tool_call_id":7})"), 400,
           "messages[0].tool_call_id", kInvalid},
          {message(R"({"role":"assistant"})"), 400, content, kInvalid},
          {message(R"({"role":"assistant","content":null,"tool_calls":[]})"), 400, content,
           kInvalid},
          {message(R"({"role":"assistant","tool_calls":{}})"), 400, "messages[0].tool_calls",
           kInvalid},
          {message(R"({"role":"assistant","tool_calls":[7]})"), 400, "messages[0].tool_calls[0]",
           kInvalid},
          {message(R"({"role":"assistant","tool_calls":[{"id":"c"}]})"), 400,
           "messages[0].tool_calls[0].function", kInvalid},
          {message(R"({"role":"assistant","tool_calls":[{"function":{"name":""}}]})"), 400,
           "messages[0].tool_calls[0].function.name", kInvalid},
          {message(
               R"({"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":7}}]})"),
           400, "messages[0].tool_calls[0].function.arguments", kInvalid},
          {message(R"({"role":"assistant","tool_calls":[{"type":"x","function":{"name":"f"}}]})"),
           400, "messages[0].tool_calls[0].type", kInvalid},
          {message(R"({"role":"user","content":"x",)"
                   R"("tool_calls":[{"id":"c","function":{"name":"f"}}]})"),
           400, "messages[0].tool_calls", kInvalid, "only for assistant"},
      },
      parse_chat_body);
}

BOOST_AUTO_TEST_CASE(completions_are_refused_for_their_own_fields) {
  check_all(
      {
          {R"({"model":"m"})", 400, "prompt", kInvalid, "missing"},
          {R"({"model":"m","prompt":null})", 400, "prompt", kInvalid},
          {R"({"model":"m","prompt":7})", 400, "prompt", kInvalid},
          {R"({"model":"m","prompt":{}})", 400, "prompt", kInvalid},
          {R"({"model":"m","prompt":[]})", 400, "prompt", kInvalid},
          {R"({"model":"m","prompt":[[]]})", 400, "prompt[0]", kInvalid},
          {R"({"model":"m","prompt":[1,2,1000]})", 400, "prompt[2]", kInvalid, "[0, 999]"},
          {R"({"model":"m","prompt":[1,-2]})", 400, "prompt[1]", kInvalid},
          {R"({"model":"m","prompt":[1,2.5]})", 400, "prompt[1]", kInvalid},
          {R"({"model":"m","prompt":[1,"a"]})", 400, "prompt[1]", kInvalid},
          {R"({"model":"m","prompt":["a",1]})", 400, "prompt[1]", kInvalid, "same kind"},
          {R"({"model":"m","prompt":["a",[1]]})", 400, "prompt[1]", kInvalid},
          {R"({"model":"m","prompt":[[1],[2,"x"]]})", 400, "prompt[1][1]", kInvalid},
          {R"({"model":"m","prompt":[[1],[4294967296]]})", 400, "prompt[1][0]", kInvalid},
          {R"({"model":"m","prompt":[)" + repeat("\"a\"", kPromptsMax + 1, ",") + "]}", 400,
           "prompt", kInvalid, "at most 128"},
          {completion(R"("suffix":"x")"), 400, "suffix", kUnsupported},
          {completion(R"("logprobs":true)"), 400, "logprobs", kInvalid, "integer"},
          {completion(R"("logprobs":21)"), 400, "logprobs", kInvalid, "[0, 20]"},
          {completion(R"("logprobs":-1)"), 400, "logprobs", kInvalid},
          {completion(R"("echo":"yes")"), 400, "echo", kInvalid},
          {completion(R"("max_tokens":-1)"), 400, "max_tokens", kInvalid},
          {completion(R"("max_tokens":0,"n":2)"), 400, "n", kInvalid},
          {completion(R"("best_of":3,"n":2)"), 400, "best_of", kUnsupported},
          {completion(R"("messages":[{"role":"user","content":"x"}])"), 400, "messages",
           kUnsupported},
          {completion(R"("top_logprobs":5)"), 400, "top_logprobs", kInvalid},
          {completion(R"("tools":[{}])"), 400, "tools", kUnsupported},
      },
      parse_completions_body);
}

BOOST_AUTO_TEST_CASE(tokenizer_endpoints_refuse_what_they_cannot_read) {
  check_all(
      {
          {R"({"model":"m"})", 400, "prompt", kInvalid, "either"},
          {R"({"prompt":"x","messages":[{"role":"user","content":"x"}]})", 400, "prompt", kInvalid},
          {R"({"prompt":7})", 400, "prompt", kInvalid},
          {R"({"messages":[]})", 400, "messages", kInvalid},
          {R"({"model":"other","prompt":"x"})", 404, "model", "model_not_found"},
          {R"({"promt":"x"})", 400, "promt", kInvalid, "prompt?"},
          {R"({"prompt":"x","tools":[{"type":"function"}]})", 400, "tools", kInvalid, "messages"},
          {R"({"prompt":"x","continue_final_message":true})", 400, "continue_final_message",
           kInvalid},
          {R"({"messages":[{"role":"user","content":"x"}],"tools":{}})", 400, "tools", kInvalid},
          {R"({"messages":[{"role":"user","content":"x"}],"chat_template":"x"})", 400,
           "chat_template", kUnsupported},
          {R"({"prompt":"x","add_special_tokens":1})", 400, "add_special_tokens", kInvalid},
      },
      parse_tokenize_body);
  check_all(
      {
          {R"({})", 400, "tokens", kInvalid},
          {R"({"tokens":"x"})", 400, "tokens", kInvalid},
          {R"({"tokens":[1000]})", 400, "tokens[0]", kInvalid},
          {R"({"tokens":[-1]})", 400, "tokens[0]", kInvalid},
          {R"({"tokens":[1],"prompt":"x"})", 400, "prompt", kInvalid},
      },
      parse_detokenize_body);
}

}  // namespace
}  // namespace troupe
