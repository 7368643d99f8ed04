#include "actors/gateway/openai/request.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "actors/gateway/openai/known_fields.h"

namespace troupe {
namespace {

constexpr RequestRules kRules[] = {{"m", 1000, 8192}};

GenerationBody chat(const std::string& fields) {
  Result<GenerationBody> parsed = parse_chat_body(
      R"({"model":"m","messages":[{"role":"user","content":"x"}])" + fields + "}", kRules);
  BOOST_REQUIRE_MESSAGE(parsed.ok(), fields << ": " << parsed.status().message());
  return std::move(parsed).value();
}

GenerationBody completion(const std::string& fields) {
  Result<GenerationBody> parsed = parse_completions_body(R"({"model":"m",)" + fields + "}", kRules);
  BOOST_REQUIRE_MESSAGE(parsed.ok(), fields << ": " << parsed.status().message());
  return std::move(parsed).value();
}

nlohmann::ordered_json messages(const std::string& array) {
  Result<GenerationBody> parsed =
      parse_chat_body(R"({"model":"m","messages":)" + array + "}", kRules);
  BOOST_REQUIRE_MESSAGE(parsed.ok(), array << ": " << parsed.status().message());
  return parsed->messages;
}

BOOST_AUTO_TEST_CASE(a_plain_chat_has_the_documented_defaults) {
  const GenerationBody body = chat("");
  BOOST_TEST(body.sampling.temperature == 1.0F);
  BOOST_TEST(body.sampling.top_p == 1.0F);
  BOOST_TEST(body.sampling.top_k == 0);
  BOOST_TEST(body.sampling.logprobs == -1);
  BOOST_TEST(body.choices == 1U);
  BOOST_TEST(!body.max_tokens);
  BOOST_TEST(!body.seed);
  BOOST_TEST(!body.stream);
  BOOST_TEST(body.stops.empty());
}

BOOST_AUTO_TEST_CASE(every_sampling_parameter_arrives) {
  const GenerationBody body = chat(
      R"(,"temperature":0.5,"top_p":0.25,"top_k":7,"min_p":0.125,"repetition_penalty":1.5,
         "presence_penalty":-1,"frequency_penalty":2,"logit_bias":{"9":-100,"3":1.5},"seed":-1,
         "n":3,"stop":["a","b"],"stop_token_ids":[5,6],"ignore_eos":true,"min_tokens":2,
         "max_tokens":18,"max_completion_tokens":9,"include_stop_str_in_output":true,
         "cache_salt":"s","logprobs":true,"top_logprobs":4)");
  BOOST_TEST(body.sampling.temperature == 0.5F);
  BOOST_TEST(body.sampling.top_p == 0.25F);
  BOOST_TEST(body.sampling.top_k == 7);
  BOOST_TEST(body.sampling.min_p == 0.125F);
  BOOST_TEST(body.sampling.repetition_penalty == 1.5F);
  BOOST_TEST(body.sampling.presence_penalty == -1.0F);
  BOOST_TEST(body.sampling.frequency_penalty == 2.0F);
  const std::vector<std::pair<TokenId, float>> biases = {{3, 1.5F}, {9, -100.0F}};
  BOOST_TEST((body.sampling.logit_bias == biases));
  BOOST_TEST(body.seed.value() == UINT64_MAX);
  BOOST_TEST(body.choices == 3U);
  BOOST_TEST((body.stops == std::vector<std::string>{"a", "b"}));
  BOOST_TEST((body.sampling.stop_token_ids == std::vector<TokenId>{5, 6}));
  BOOST_TEST(body.sampling.ignore_eos);
  BOOST_TEST(body.sampling.min_tokens == 2U);
  BOOST_TEST(body.max_tokens.value() == 9U);  // the newer name wins
  BOOST_TEST(body.max_tokens_field == "max_completion_tokens");
  BOOST_TEST((body.stop_text == StopText::kInclude));
  BOOST_TEST(body.cache_salt == "s");
  BOOST_TEST(body.sampling.logprobs == 4);
}

BOOST_AUTO_TEST_CASE(null_means_the_default_and_tiny_values_are_taken) {
  const GenerationBody body = chat(
      R"(,"temperature":null,"stop":null,"n":null,"max_tokens":null,"logit_bias":null,"tools":null,
         "stream_options":null,"response_format":null,"logprobs":null,"top_k":-1,"top_p":1e-9,
         "a_field_of_tomorrow":null)");
  BOOST_TEST(body.sampling.temperature == 1.0F);
  BOOST_TEST(body.sampling.top_k == 0);
  BOOST_TEST(body.choices == 1U);
  for (const char* tiny : {"1e-5", "1e-12", "1e-38", "0"}) {
    BOOST_TEST(chat(std::string(",\"temperature\":") + tiny).sampling.temperature < 1.1e-5F);
  }
}

BOOST_AUTO_TEST_CASE(fields_that_common_clients_send_are_tolerated) {
  const GenerationBody body = chat(
      R"(,"user":"u","store":false,"metadata":{"a":"b"},"service_tier":"auto","tools":[],
         "parallel_tool_calls":true,"stream":true,"ignore_eos":true,"tool_choice":"none",
         "stream_options":{"include_usage":true,"continuous_usage_stats":true},"priority":0,
         "response_format":{"type":"text"},"modalities":["text"],"max_completion_tokens":5,
         "skip_special_tokens":true,"safety_identifier":"x","reasoning_effort":null,"stop":[])");
  BOOST_TEST(body.stream);
  BOOST_TEST(body.include_usage);
  BOOST_TEST(body.continuous_usage);
  BOOST_TEST(body.stops.empty());
}

BOOST_AUTO_TEST_CASE(what_routers_in_front_add_to_every_request_is_taken) {
  BOOST_TEST(chat(R"(,"logprobs":false,"no_stop_trim":false,"ignore_eos":true,
         "continue_final_message":false,"skip_special_tokens":true,"separate_reasoning":true,
         "stream_reasoning":true,"return_hidden_states":false,"include_reasoning":true)")
                 .messages.size() == 1U);
}

BOOST_AUTO_TEST_CASE(tools_that_may_not_be_called_are_ignored) {
  const GenerationBody body =
      chat(R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none")");
  BOOST_TEST(body.messages.size() == 1U);
}

BOOST_AUTO_TEST_CASE(contents_come_as_texts_or_as_lists_of_text_parts) {
  const auto out = messages(
      R"([{"role":"developer","content":"rules"},
          {"role":"user","name":"n",
           "content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
          {"role":"assistant","content":"","refusal":null},
          {"role":"user","content":"\ud83e\udda6"}])");
  BOOST_TEST(out[0].dump() == R"({"role":"developer","content":"rules"})");
  BOOST_TEST(out[1]["content"].dump() ==
             R"([{"type":"text","text":"a"},{"type":"text","text":"b"}])");
  BOOST_TEST(out[1]["name"] == "n");
  BOOST_TEST(out[2].dump() == R"({"role":"assistant","content":""})");
  BOOST_TEST(out[3]["content"] == "\xF0\x9F\xA6\xA6");
}

BOOST_AUTO_TEST_CASE(tool_turns_come_back_as_the_api_sent_them) {
  const auto out = messages(
      R"([{"role":"assistant","content":null,"tool_calls":[
            {"id":"c1","type":"function","function":{"name":"f","arguments":"{\"z\":1,\"a\":[]}"}},
            {"id":"c2","type":"function","function":{"name":"g","arguments":"not json"}}]},
          {"role":"tool","tool_call_id":"c1","content":"42"},
          {"role":"assistant","content":"x","tool_calls":[]}])");
  BOOST_TEST(out[0]["content"].is_null());
  BOOST_TEST(out[0]["tool_calls"][0]["function"]["arguments"] == R"({"z":1,"a":[]})");
  BOOST_TEST(out[0]["tool_calls"][1]["function"]["arguments"] == "not json");
  BOOST_TEST(out[1]["tool_call_id"] == "c1");
  BOOST_TEST(out[2]["content"] == "x");
  BOOST_TEST(!out[2].contains("tool_calls"));
}

BOOST_AUTO_TEST_CASE(reasoning_goes_back_to_the_model_under_either_name) {
  const auto out = messages(
      R"([{"role":"assistant","content":"x","reasoning":"r"},
          {"role":"assistant","content":null,"reasoning_content":"old","reasoning":"new"},
          {"role":"assistant","content":"x","reasoning":null}])");
  BOOST_TEST(out[0]["reasoning_content"] == "r");
  BOOST_TEST(out[1]["reasoning_content"] == "old");
  BOOST_TEST(!out[2].contains("reasoning_content"));
}

BOOST_AUTO_TEST_CASE(what_shapes_a_prompt_is_read) {
  BOOST_TEST(chat("").chat.add_generation_prompt);
  BOOST_TEST(!chat(R"(,"add_generation_prompt":false)").chat.add_generation_prompt);
  const ChatPromptOptions continued = chat(R"(,"continue_final_message":true)").chat;
  BOOST_TEST(continued.continue_final_message);
  BOOST_TEST(!continued.add_generation_prompt);
  const ChatPromptOptions options =
      chat(R"(,"chat_template_kwargs":{"enable_thinking":false,"x":[1]})").chat;
  BOOST_TEST(options.template_kwargs.dump() == R"({"enable_thinking":false,"x":[1]})");
  BOOST_TEST(chat(R"(,"chat_template_kwargs":{})").chat.template_kwargs.is_null());
}

BOOST_AUTO_TEST_CASE(tokens_are_allowed_and_words_forbidden) {
  const GenerationBody body = chat(R"(,"allowed_token_ids":[9,3,9],"bad_words":["a"," b c"])");
  BOOST_TEST((body.sampling.allowed_tokens == std::vector<TokenId>{3, 9}));
  BOOST_TEST((body.bad_words == std::vector<std::string>{"a", " b c"}));
  BOOST_TEST(chat(R"(,"allowed_token_ids":null,"bad_words":[])").bad_words.empty());
  BOOST_TEST(chat(R"(,"reasoning_effort":"low")").chat.reasoning_effort == "low");
}

BOOST_AUTO_TEST_CASE(a_trusting_server_takes_a_template_from_the_request) {
  const RequestRules trusting[] = {{"m", 1000, 2048, RequestTemplates::kTrusted}};
  const auto body = parse_chat_body(
      R"({"model":"m","messages":[{"role":"user","content":"x"}],"chat_template":"{{ 1 }}"})",
      trusting);
  BOOST_REQUIRE(body.ok());
  BOOST_TEST(body->chat.chat_template == "{{ 1 }}");
}

BOOST_AUTO_TEST_CASE(prompts_of_all_four_forms_are_read) {
  BOOST_TEST(completion(R"("prompt":"x")").prompts.at(0).text == "x");
  BOOST_TEST(completion(R"("prompt":["x","y"])").prompts.at(1).text == "y");
  const GenerationBody tokens = completion(R"("prompt":[1,2,999])");
  BOOST_TEST(tokens.prompts.size() == 1U);
  BOOST_TEST((tokens.prompts[0].tokens == std::vector<TokenId>{1, 2, 999}));
  const GenerationBody batch = completion(R"("prompt":[[1],[2,3]],"n":2)");
  BOOST_TEST(batch.prompts.size() == 2U);
  BOOST_TEST((batch.prompts[1].tokens == std::vector<TokenId>{2, 3}));
}

BOOST_AUTO_TEST_CASE(echo_with_logprobs_asks_for_the_prompts_scores) {
  const GenerationBody body =
      completion(R"("prompt":"x","echo":true,"logprobs":2,"max_tokens":0,"best_of":1)");
  BOOST_TEST(body.sampling.prompt_logprobs == 2);
  BOOST_TEST(body.sampling.logprobs == 2);
  BOOST_TEST(body.max_tokens.value() == 0U);
  BOOST_TEST(completion(R"("prompt":"x","echo":true)").sampling.prompt_logprobs == -1);
  BOOST_TEST(completion(R"("prompt":"x","logprobs":0)").sampling.logprobs == 0);
}

BOOST_AUTO_TEST_CASE(one_bias_for_every_token_is_taken) {
  std::string biases;
  for (int i = 0; i < 1000; ++i) biases += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":1";
  BOOST_TEST(chat(",\"logit_bias\":{" + biases + "}").sampling.logit_bias.size() == 1000U);
}

BOOST_AUTO_TEST_CASE(tokenize_takes_a_prompt_or_a_conversation) {
  const auto prompt = parse_tokenize_body(R"({"prompt":"x","return_token_strs":true})", kRules);
  BOOST_REQUIRE(prompt.ok());
  BOOST_TEST(prompt->prompt == "x");
  BOOST_TEST(prompt->return_token_strs);
  const auto chat_body = parse_tokenize_body(
      R"({"messages":[{"role":"user","content":"x"}],"add_generation_prompt":false})", kRules);
  BOOST_REQUIRE(chat_body.ok());
  BOOST_TEST(chat_body->messages.size() == 1U);
  BOOST_TEST(!chat_body->chat.add_generation_prompt);
}

BOOST_AUTO_TEST_CASE(edit_distance_counts_insertions_deletions_and_substitutions) {
  BOOST_TEST(edit_distance("", "") == 0U);
  BOOST_TEST(edit_distance("abc", "abc") == 0U);
  BOOST_TEST(edit_distance("kitten", "sitting") == 3U);
  BOOST_TEST(edit_distance("max_tokns", "max_tokens") == 1U);
  BOOST_TEST(edit_distance(std::string(10'000, 'a'), "b") == 64U);
}

}  // namespace
}  // namespace troupe
