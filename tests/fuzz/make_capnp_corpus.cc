// Writes the seeds of wire_fuzz and rpc_request_fuzz: a sound message of every kind, for the fuzzer
// to break. Run it anew after a change of schema/.
//
//   ninja make_capnp_corpus && bin/make_capnp_corpus tests/fuzz/corpus

#include <capnp/message.h>
#include <capnp/serialize.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "actors/wire/codec.h"
#include "schema/serving.capnp.h"

namespace {

using troupe::RequestId;
using troupe::SequenceId;
using troupe::WorkerId;
using namespace troupe::wire;  // every kind of message

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) {
    std::filesystem::create_directories(path);
  }

  void add(const std::string& name, std::string_view bytes) {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    good_ = good_ && file.good();
  }
  void add(const std::string& name, const Message& message) {
    const troupe::MessageWords words = encode(message);
    add(name, std::string_view(reinterpret_cast<const char*>(words.data()),
                               words.size() * sizeof(words[0])));
  }
  void add(const std::string& name, char method, capnp::MessageBuilder& builder) {
    const kj::Array<capnp::word> words = capnp::messageToFlatArray(builder);
    const auto bytes = words.asChars();
    add(name, method + std::string(bytes.begin(), bytes.size()));
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::filesystem::path path_;
  bool good_ = true;
};

Request request() {
  troupe::SamplingParams params;
  params.temperature = 0.5F;
  params.logit_bias = {{3, -100.0F}};
  params.stop_token_ids = {2, 5};
  params.logprobs = 5;
  Request out;
  out.id = RequestId(7);
  out.label = "label";
  out.gateway = "10.0.0.1:7000/gateway";
  out.prompt = {1, 2, 49151};
  out.sequences = {{SequenceId(8), params}, {SequenceId(9), {}}};
  out.cache_salt = "salt";
  return out;
}

Emitted emitted() {
  Emission tokens;
  tokens.request = RequestId(7);
  tokens.sequence = SequenceId(8);
  tokens.tokens = {{5, -0.5F, {{5, -0.5F}, {6, -1.5F}}}, {6, -2.0F, {}}};
  tokens.prompt_scores = {{9, -3.0F, {}}};
  tokens.stops = {{troupe::Stop::kReserved, troupe::TimePoint{}}};
  Emission end;
  end.end = End{};
  end.end->error = {troupe::StatusCode::kContextLength, "too long", "prompt"};
  Emitted out;
  out.worker = WorkerId(3);
  out.emissions = {tokens, end};
  return out;
}

void add_control(Folder& folder) {
  Routed routed;
  routed.request = request();
  routed.prefill = "10.0.0.7:7000/worker";
  Rejected rejected;
  rejected.error = {troupe::StatusCode::kResourceExhausted, "full", ""};
  Heartbeat heartbeat;
  heartbeat.endpoint = "10.0.0.7:7000/worker";
  Health health;
  health.workers.resize(2);
  Reserved reserved;
  reserved.tokens = {1, 2, 3};
  Described described;
  described.header = {std::byte{'G'}, std::byte{0}};
  described.served_names = {"smol", "another"};
  folder.add("accepted", Accepted{request()});
  folder.add("routed", routed);
  folder.add("rejected", rejected);
  folder.add("cancelled", Cancelled{RequestId(7), {SequenceId(8)}});
  folder.add("emitted", emitted());
  folder.add("finished", Finished{RequestId(7), 2, WorkerId(3)});
  folder.add("heartbeat", heartbeat);
  folder.add("health", health);
  folder.add("reserved", reserved);
  folder.add("prefilled", Prefilled{});
  folder.add("released", Released{9});
  folder.add("refused", Refused{"another model"});
  folder.add("observe", Observe{"10.0.0.7:7002/monitor"});
  folder.add("describe", Describe{"10.0.0.7:7000/models"});
  folder.add("described", described);
  folder.add("empty", "");
  // More segments than 32 bits count.
  folder.add("segments_all_ones", std::string(16, '\xff'));
}

void fill(troupe::rpc::Parameters::Builder out) {
  out.setTemperature(0.5);
  out.setLogprobs(3);
  out.setMaxTokens(9);
  out.getSeed().setValue(7);
  out.setCacheSalt("salt");
  out.initStop(2).set(0, "\n\n");
  out.initStopTokenIds(1).set(0, 5);
  auto bias = out.initLogitBias(2);
  bias[0].setToken(3);
  bias[0].setBias(-100);
  bias[1].setToken(4);
}

void fill(capnp::List<troupe::rpc::Message>::Builder out) {
  out[0].setRole("user");
  out[0].setContent("Hello");
  out[1].setRole("assistant");
  auto call = out[1].initToolCalls(1)[0];
  call.setId("c1");
  call.setName("f");
  call.setArguments("{\"x\": [1, 2]}");
  out[2].setRole("tool");
  out[2].setToolCallId("c1");
  out[2].setContent("42");
}

void fill_tools(troupe::rpc::Parameters::Builder parameters) {
  auto tools = parameters.initTools(2);
  tools[0].setName("f");
  tools[0].setDescription("Does f.");
  tools[0].setParameters(R"({"type":"object","properties":{"a":{"type":"integer"}}})");
  tools[0].setStrict(true);
  tools[1].setName("g");
  parameters.getToolChoice().setNamed("g");
  parameters.setParallelToolCalls(false);
  parameters.initAllowedTokenIds(2).set(1, 7);
  parameters.initBadWords(1).set(0, "word");
}

void add_requests(Folder& folder) {
  using troupe::rpc::Serving;
  capnp::MallocMessageBuilder offer;
  auto asked = offer.initRoot<Serving::ChatParams>();
  asked.setModel("m");
  fill(asked.initMessages(3));
  fill_tools(asked.initParameters());
  folder.add("chat_tools", 0, offer);
  capnp::MallocMessageBuilder chat, text, tokens, tokenize, detokenize;
  auto conversation = chat.initRoot<Serving::ChatParams>();
  conversation.setModel("m");
  fill(conversation.initMessages(3));
  fill(conversation.initParameters());
  folder.add("chat", 0, chat);
  auto completion = text.initRoot<Serving::CompleteParams>();
  completion.setModel("m");
  completion.initPrompt().setText("Once upon a time");
  fill(completion.initParameters());
  folder.add("complete_text", 1, text);
  auto list = tokens.initRoot<Serving::CompleteParams>().initPrompt().initTokens(3);
  for (uint32_t i = 0; i < list.size(); ++i) list.set(i, i * 400);
  folder.add("complete_tokens", 1, tokens);
  auto both = tokenize.initRoot<Serving::TokenizeParams>();
  both.setModel("m");
  both.setPrompt("text");
  fill(both.initMessages(3));
  folder.add("tokenize", 2, tokenize);
  detokenize.initRoot<Serving::DetokenizeParams>().initTokens(2).set(0, 999);
  folder.add("detokenize", 3, detokenize);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_capnp_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  Folder control(folder / "wire"), requests(folder / "rpc_request");
  add_control(control);
  add_requests(requests);
  if (control.good() && requests.good()) return 0;
  std::cerr << "the seeds cannot be written to " << folder << "\n";
  return 1;
}
