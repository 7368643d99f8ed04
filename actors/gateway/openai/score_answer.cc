#include "actors/gateway/openai/score_answer.h"

#include <algorithm>
#include <utility>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/openai/logprobs_format.h"
#include "actors/gateway/openai/response_format.h"
#include "actors/gateway/text/escape.h"
#include "engine/tokenizer/detokenizer.h"

namespace troupe {

ScoreAnswer::ScoreAnswer(const ScoreBody& body, ScoreTokens tokens, RunIdentity identity,
                         const ServedModel& model, Generator& generator, JsonSink& sink)
    : tokens_(std::move(tokens)),
      identity_(std::move(identity)),
      tokenizer_(model.tokenizer),
      sink_(sink),
      batch_(make_requests(body.cache_salt, model.digest), generator,
             [this](Result<std::vector<PromptOutcome>> outcomes, size_t failed) {
               if (outcomes.ok()) return finish(outcomes.value());
               const Status& status = outcomes.status();
               const std::string path = "continuations[" + std::to_string(failed) + "]";
               sink_.on_error({status.code(), path + ": " + status.message(), path});
             }) {}

// Workers find that the prompt of all but the first is cached, or being computed.
std::vector<GenerationRequest> ScoreAnswer::make_requests(const std::string& cache_salt,
                                                          const std::string& digest) const {
  std::vector<GenerationRequest> requests;
  for (const std::vector<TokenId>& continuation : tokens_.continuations) {
    GenerationRequest& request = requests.emplace_back();
    request.label = identity_.label;
    request.prompt = tokens_.prompt;
    request.prompt.insert(request.prompt.end(), continuation.begin(), continuation.end());
    request.cache_salt = cache_salt;
    request.model = digest;
    SamplingParams& params = request.choices.emplace_back();
    params.prompt_logprobs = 1;  // with the most probable token, to know whether it is the same
    params.score_from = static_cast<uint32_t>(tokens_.prompt.size());
  }
  return requests;
}

std::string ScoreAnswer::entry(size_t index, const std::vector<SampledToken>& scores) const {
  std::string names, ids, values;
  double sum = 0.0;
  bool is_greedy = true;
  for (const SampledToken& score : scores) {
    for (std::string* list : {&names, &ids, &values}) *list += list->empty() ? "" : ",";
    append_json_string(names, to_valid_utf8(tokenizer_.token_bytes(score.token)));
    ids += std::to_string(score.token);
    const float value = std::max(score.logprob, kLogprobMin);
    append_json_number(values, value);
    sum += static_cast<double>(value);
    is_greedy = is_greedy && !score.top.empty() && score.top[0].token == score.token;
  }
  std::string out = R"({"object":"score","index":)" + std::to_string(index);
  out += ",\"logprob\":" + format_number(sum);
  out += ",\"token_count\":" + std::to_string(scores.size());
  out += std::string(",\"is_greedy\":") + (is_greedy ? "true" : "false");
  out += ",\"tokens\":[" + names + "],\"token_ids\":[" + ids + "],\"token_logprobs\":[" + values;
  return out + "]}";
}

void ScoreAnswer::finish(const std::vector<PromptOutcome>& outcomes) {
  std::string data;
  UsageTotals totals;
  totals.prompt_tokens = tokens_.prompt.size();
  uint64_t cached = UINT64_MAX;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const size_t expected = tokens_.continuations[i].size();
    if (outcomes[i].scores.size() != expected) {
      return sink_.on_error({StatusCode::kInternal,
                             "the worker did not score each token of a continuation exactly once"});
    }
    totals.prompt_tokens += expected;
    // The one that found least computed the prompt; the others shared it.
    cached = std::min<uint64_t>(cached, outcomes[i].usage.cached_tokens);
    if (i > 0) data += ',';
    data += entry(i, outcomes[i].scores);
  }
  totals.cached_tokens = cached;
  std::string out = "{\"id\":";
  append_json_string(out, identity_.response_id);
  out += ",\"object\":\"list\",\"created\":" + std::to_string(identity_.created_unix_s);
  out += ",\"model\":";
  append_json_string(out, identity_.model);
  out += ",\"data\":[" + data + "],\"usage\":" + ResponseFormat::usage(totals) + "}";
  sink_.on_end(std::move(out));
}

}  // namespace troupe
