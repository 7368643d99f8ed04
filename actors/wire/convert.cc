#include "actors/wire/convert.h"

#include "actors/wire/convert_common.h"

namespace troupe::wire::convert {
namespace {

// Not to be hidden by the functions of the same names below.
using convert::read;
using convert::write;

// The enums on both sides have one order; the casts rest on it.
static_assert(static_cast<int>(schema::Stop::FINISHED) == static_cast<int>(Stop::kFinished));
static_assert(static_cast<int>(schema::FinishReason::LENGTH) ==
              static_cast<int>(FinishReason::kLength));
static_assert(static_cast<int>(schema::GrammarKind::STRUCTURAL_TAG) ==
              static_cast<int>(GrammarKind::kStructuralTag));
static_assert(static_cast<int>(schema::Pooling::LAST) == static_cast<int>(Pooling::kLast));

void write(const SamplingParams& in, schema::SamplingParams::Builder out) {
  out.setTemperature(in.temperature);
  out.setTopK(in.top_k);
  out.setTopP(in.top_p);
  out.setMinP(in.min_p);
  out.setRepetitionPenalty(in.repetition_penalty);
  out.setPresencePenalty(in.presence_penalty);
  out.setFrequencyPenalty(in.frequency_penalty);
  auto biases = out.initLogitBias(static_cast<uint32_t>(in.logit_bias.size()));
  for (uint32_t i = 0; i < biases.size(); ++i) {
    biases[i].setToken(in.logit_bias[i].first);
    biases[i].setBias(in.logit_bias[i].second);
  }
  out.setSeed(in.seed);
  write_tokens(in.stop_token_ids,
               out.initStopTokenIds(static_cast<uint32_t>(in.stop_token_ids.size())));
  out.setIgnoreEos(in.ignore_eos);
  out.setMinTokens(in.min_tokens);
  out.setMaxTokens(in.max_tokens);
  out.setLogprobs(in.logprobs);
  out.setPromptLogprobs(in.prompt_logprobs);
  if (!in.grammar.empty()) {
    auto grammar = out.initGrammar();
    grammar.setKind(static_cast<schema::GrammarKind>(in.grammar.kind));
    grammar.setText(in.grammar.text);
  }
  out.setScoreFrom(in.score_from);
  out.setPooling(static_cast<schema::Pooling>(in.pooling));
  if (!in.allowed_tokens.empty()) {
    write_tokens(in.allowed_tokens,
                 out.initAllowedTokens(static_cast<uint32_t>(in.allowed_tokens.size())));
  }
  if (in.bad_words.empty()) return;
  auto words = out.initBadWords(static_cast<uint32_t>(in.bad_words.size()));
  for (uint32_t i = 0; i < words.size(); ++i) {
    write_tokens(in.bad_words[i], words.init(i, static_cast<uint32_t>(in.bad_words[i].size())));
  }
}

SamplingParams read(schema::SamplingParams::Reader in) {
  SamplingParams out;
  out.temperature = in.getTemperature();
  out.top_k = in.getTopK();
  out.top_p = in.getTopP();
  out.min_p = in.getMinP();
  out.repetition_penalty = in.getRepetitionPenalty();
  out.presence_penalty = in.getPresencePenalty();
  out.frequency_penalty = in.getFrequencyPenalty();
  for (const auto bias : in.getLogitBias()) {
    out.logit_bias.emplace_back(bias.getToken(), bias.getBias());
  }
  out.seed = in.getSeed();
  out.stop_token_ids = read_tokens(in.getStopTokenIds());
  out.ignore_eos = in.getIgnoreEos();
  out.min_tokens = in.getMinTokens();
  out.max_tokens = in.getMaxTokens();
  out.logprobs = in.getLogprobs();
  out.prompt_logprobs = in.getPromptLogprobs();
  out.score_from = in.getScoreFrom();
  KJ_REQUIRE(out.score_from >= 1, "the first token has no score");
  if (in.hasGrammar()) {
    const auto kind = static_cast<uint16_t>(in.getGrammar().getKind());
    KJ_REQUIRE(kind <= static_cast<uint16_t>(GrammarKind::kStructuralTag), "unknown grammar", kind);
    out.grammar.kind = static_cast<GrammarKind>(kind);
    const auto text = in.getGrammar().getText();
    out.grammar.text.assign(text.begin(), text.end());
  }
  const auto pooling = static_cast<uint16_t>(in.getPooling());
  KJ_REQUIRE(pooling <= static_cast<uint16_t>(Pooling::kLast), "unknown pooling", pooling);
  out.pooling = static_cast<Pooling>(pooling);
  out.allowed_tokens = read_tokens(in.getAllowedTokens());
  for (const auto word : in.getBadWords()) out.bad_words.push_back(read_tokens(word));
  return out;
}

void write(const std::vector<SampledToken>& in, capnp::List<schema::SampledToken>::Builder out) {
  for (uint32_t i = 0; i < out.size(); ++i) {
    out[i].setToken(in[i].token);
    out[i].setLogprob(in[i].logprob);
    if (in[i].top.empty()) continue;
    auto top = out[i].initTop(static_cast<uint32_t>(in[i].top.size()));
    for (uint32_t k = 0; k < top.size(); ++k) {
      top[k].setToken(in[i].top[k].token);
      top[k].setLogprob(in[i].top[k].logprob);
    }
  }
}

std::vector<SampledToken> read(capnp::List<schema::SampledToken>::Reader in) {
  std::vector<SampledToken> out;
  out.reserve(in.size());
  for (const auto token : in) {
    SampledToken& sampled = out.emplace_back();
    sampled.token = token.getToken();
    sampled.logprob = token.getLogprob();
    for (const auto top : token.getTop()) sampled.top.push_back({top.getToken(), top.getLogprob()});
  }
  return out;
}

void write(const std::vector<StopTime>& in, capnp::List<schema::StopTime>::Builder out) {
  for (uint32_t i = 0; i < out.size(); ++i) {
    out[i].setStop(static_cast<schema::Stop>(in[i].stop));
    out[i].setAtNs(to_ns(in[i].at));
  }
}

std::vector<StopTime> read(capnp::List<schema::StopTime>::Reader in) {
  std::vector<StopTime> out;
  for (const auto stop : in) {
    const auto which = static_cast<uint16_t>(stop.getStop());
    KJ_REQUIRE(which < kStopCount, "unknown stop", which);
    out.push_back({static_cast<Stop>(which), from_ns(stop.getAtNs())});
  }
  return out;
}

void write(const End& in, schema::End::Builder out) {
  if (in.error.ok()) {
    out.setFinished(static_cast<schema::FinishReason>(in.reason));
  } else {
    write(in.error, out.initFailed());
  }
  out.setStopToken(in.stop_token);
  out.setPromptTokens(in.prompt_tokens);
  out.setCachedTokens(in.cached_tokens);
  out.setOutputTokens(in.output_tokens);
}

End read(schema::End::Reader in) {
  End out;
  if (in.isFailed()) {
    out.error = read(in.getFailed());
    KJ_REQUIRE(!out.error.ok(), "a sequence failed with code ok");
  } else {
    const auto reason = static_cast<uint16_t>(in.getFinished());
    KJ_REQUIRE(reason <= static_cast<uint16_t>(FinishReason::kLength), "unknown reason", reason);
    out.reason = static_cast<FinishReason>(reason);
  }
  out.stop_token = in.getStopToken();
  out.prompt_tokens = in.getPromptTokens();
  out.cached_tokens = in.getCachedTokens();
  out.output_tokens = in.getOutputTokens();
  return out;
}

}  // namespace

void write(const Request& in, schema::Request::Builder out) {
  out.setId(in.id.value);
  out.setLabel(in.label);
  out.setGateway(in.gateway);
  write_tokens(in.prompt, out.initPrompt(static_cast<uint32_t>(in.prompt.size())));
  auto sequences = out.initSequences(static_cast<uint32_t>(in.sequences.size()));
  for (uint32_t i = 0; i < sequences.size(); ++i) {
    sequences[i].setId(in.sequences[i].id.value);
    write(in.sequences[i].params, sequences[i].initParams());
  }
  out.setCacheSalt(in.cache_salt);
  out.setAcceptedNs(to_ns(in.accepted));
  out.setModel(in.model);
}

Request read(schema::Request::Reader in) {
  Request out;
  out.id = RequestId(in.getId());
  out.label = in.getLabel().cStr();
  out.gateway = in.getGateway().cStr();
  out.prompt = read_tokens(in.getPrompt());
  for (const auto sequence : in.getSequences()) {
    out.sequences.push_back({SequenceId(sequence.getId()), read(sequence.getParams())});
  }
  out.cache_salt = in.getCacheSalt().cStr();
  out.accepted = from_ns(in.getAcceptedNs());
  out.model = in.getModel().cStr();
  return out;
}

void write(const Routed& in, schema::Routed::Builder out) {
  write(in.request, out.initRequest());
  out.setAttempt(in.attempt);
  out.setPrefill(in.prefill);
  out.setPrefillWaitMs(static_cast<uint32_t>(in.prefill_wait.count()));
  out.setRouter(in.router);
  out.setPrefillTokens(in.prefill_tokens);
}

Routed read(schema::Routed::Reader in) {
  return {read(in.getRequest()),  in.getAttempt(),
          in.getPrefill().cStr(), std::chrono::milliseconds(in.getPrefillWaitMs()),
          in.getRouter().cStr(),  in.getPrefillTokens()};
}

void write(const Rejected& in, schema::Rejected::Builder out) {
  out.setRequest(in.request.value);
  out.setAttempt(in.attempt);
  write(in.error, out.initError());
  out.setRetryAfterMs(static_cast<uint32_t>(in.retry_after.count()));
}

Rejected read(schema::Rejected::Reader in) {
  return {RequestId(in.getRequest()), in.getAttempt(), read(in.getError()),
          std::chrono::milliseconds(in.getRetryAfterMs())};
}

void write(const Cancelled& in, schema::Cancelled::Builder out) {
  out.setRequest(in.request.value);
  auto sequences = out.initSequences(static_cast<uint32_t>(in.sequences.size()));
  for (uint32_t i = 0; i < sequences.size(); ++i) sequences.set(i, in.sequences[i].value);
}

Cancelled read(schema::Cancelled::Reader in) {
  Cancelled out{RequestId(in.getRequest()), {}};
  for (const uint64_t id : in.getSequences()) out.sequences.emplace_back(id);
  return out;
}

void write(const Emitted& in, schema::Emitted::Builder out) {
  out.setWorker(in.worker.value);
  out.setStep(in.step);
  out.setDeviceStartedNs(to_ns(in.device_started));
  out.setDeviceFinishedNs(to_ns(in.device_finished));
  out.setSentNs(to_ns(in.sent));
  auto emissions = out.initEmissions(static_cast<uint32_t>(in.emissions.size()));
  for (uint32_t i = 0; i < emissions.size(); ++i) {
    const Emission& from = in.emissions[i];
    auto to = emissions[i];
    to.setRequest(from.request.value);
    to.setSequence(from.sequence.value);
    to.setAttempt(from.attempt);
    to.setFirstIndex(from.first_index);
    to.setCachedTokens(from.cached_tokens);
    write(from.tokens, to.initTokens(static_cast<uint32_t>(from.tokens.size())));
    to.setFirstScore(from.first_score);
    write(from.prompt_scores,
          to.initPromptScores(static_cast<uint32_t>(from.prompt_scores.size())));
    if (!from.stops.empty()) {
      write(from.stops, to.initStops(static_cast<uint32_t>(from.stops.size())));
    }
    to.setComputeNs(from.compute.count());
    if (!from.embedding.empty()) {
      to.setEmbedding(kj::arrayPtr(from.embedding.data(), from.embedding.size()));
    }
    if (from.end) write(*from.end, to.initEnd());
  }
}

Emitted read(schema::Emitted::Reader in) {
  Emitted out;
  out.worker = WorkerId(in.getWorker());
  out.step = in.getStep();
  out.device_started = from_ns(in.getDeviceStartedNs());
  out.device_finished = from_ns(in.getDeviceFinishedNs());
  out.sent = from_ns(in.getSentNs());
  out.emissions.reserve(in.getEmissions().size());
  for (const auto from : in.getEmissions()) {
    Emission& to = out.emissions.emplace_back();
    to.request = RequestId(from.getRequest());
    to.sequence = SequenceId(from.getSequence());
    to.attempt = from.getAttempt();
    to.first_index = from.getFirstIndex();
    to.cached_tokens = from.getCachedTokens();
    to.tokens = read(from.getTokens());
    to.first_score = from.getFirstScore();
    to.prompt_scores = read(from.getPromptScores());
    to.stops = read(from.getStops());
    to.compute = Duration(from.getComputeNs());
    to.embedding.reserve(from.getEmbedding().size());
    for (const float value : from.getEmbedding()) to.embedding.push_back(value);
    if (from.hasEnd()) to.end = read(from.getEnd());
  }
  return out;
}

void write(const Finished& in, schema::Finished::Builder out) {
  out.setRequest(in.request.value);
  out.setAttempt(in.attempt);
  out.setWorker(in.worker.value);
}

Finished read(schema::Finished::Reader in) {
  return {RequestId(in.getRequest()), in.getAttempt(), WorkerId(in.getWorker())};
}

}  // namespace troupe::wire::convert
