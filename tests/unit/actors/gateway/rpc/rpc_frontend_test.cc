#include "actors/gateway/rpc/rpc_frontend.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/gateway/rpc/rpc_fixture.h"

namespace troupe {
namespace {

using namespace test;

BOOST_FIXTURE_TEST_CASE(a_client_learns_what_there_is, RpcFixture) {
  start();
  RpcClient client(*this);
  BOOST_TEST(str(await(client.serving.versionRequest().send()).getVersion()) == "1.2.3");
  const auto models = await(client.serving.modelsRequest().send());
  BOOST_REQUIRE(models.getModels().size() == 1U);
  BOOST_TEST(str(models.getModels()[0].getName()) == "tiny");
  BOOST_TEST(models.getModels()[0].getVocabSize() == kTinyVocab);
  BOOST_TEST(models.getModels()[0].getContextTokens() == kTinyContext);
  BOOST_TEST(models.getModels()[0].getChat());
  BOOST_TEST(await(client.serving.healthRequest().send()).getReady());
  health.status = {StatusCode::kUnavailable, "not yet"};
  const auto ill = await(client.serving.healthRequest().send());
  BOOST_TEST(!ill.getReady());
  BOOST_TEST(str(ill.getReason()) == "not yet");
}

BOOST_FIXTURE_TEST_CASE(tokenize_and_detokenize_are_each_others_inverse, RpcFixture) {
  start();
  RpcClient client(*this);
  const auto text_of = [&](capnp::List<uint32_t>::Reader tokens) {
    auto request = client.serving.detokenizeRequest();
    request.setTokens(tokens);
    return str(await(request.send()).getText());
  };
  auto request = client.serving.tokenizeRequest();
  request.setPrompt("hi<|im_end|>");
  const auto tokens = await(request.send());
  BOOST_TEST(text_of(tokens.getTokens()) == "hi<|im_end|>");
  auto conversation = client.serving.tokenizeRequest();
  auto message = conversation.initMessages(1)[0];
  message.setRole("user");
  message.setContent("hi");
  const auto rendered = await(conversation.send());
  BOOST_TEST(text_of(rendered.getTokens()) ==
             "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
}

BOOST_FIXTURE_TEST_CASE(an_answer_comes_whole_without_a_sink, RpcFixture) {
  start();
  RpcClient client(*this);
  auto request = client.chat();
  request.initParameters().setLogprobs(1);
  request.getParameters().setLabel("mine");
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  BOOST_TEST(generator.entry(1).request.label == "mine");
  generator.tokens(1, {{kHello, -0.25F, {{kWorld, -0.125F}}}});
  generator.token(1, kImEnd);
  generator.finish(1, FinishReason::kStop, 0, 5);
  const auto answer = await(kj::mv(promise));
  const auto choice = answer.getAnswer().getChoices()[0];
  BOOST_TEST(str(choice.getText()) == "Hello");
  BOOST_REQUIRE(choice.getTokens().size() == 2U);
  BOOST_TEST(choice.getTokens()[0].getLogprob() == -0.25F);
  BOOST_TEST(choice.getTokens()[0].getTop()[0].getToken() == uint32_t{kWorld});
  BOOST_TEST((choice.getFinishReason() == rpc::FinishReason::STOP));
  BOOST_TEST(answer.getAnswer().getUsage().getCompletionTokens() == 2U);
  BOOST_TEST(answer.getAnswer().getUsage().getCachedTokens() == 5);
  BOOST_TEST(std::string(answer.getAnswer().getId().cStr()).starts_with("chatcmpl-"));
  BOOST_TEST(load->generations() == 0U);
}

BOOST_FIXTURE_TEST_CASE(parameters_arrive_as_they_were_sent, RpcFixture) {
  start();
  RpcClient client(*this);
  auto request = client.completion();
  auto parameters = request.initParameters();
  parameters.setTemperature(0.7);
  parameters.setTopP(0.9);
  parameters.setTopK(5);
  parameters.setMinP(0.1);
  parameters.setRepetitionPenalty(1.5);
  parameters.setPresencePenalty(-1);
  parameters.setFrequencyPenalty(0.5);
  parameters.initLogitBias(1)[0].setToken(7);
  parameters.getLogitBias()[0].setBias(-3);
  parameters.getSeed().setValue(9);
  parameters.setN(2);
  parameters.setMaxTokens(11);
  parameters.setMinTokens(3);
  parameters.initStopTokenIds(1).set(0, kWorld);
  parameters.setIgnoreEos(true);
  parameters.setLogprobs(4);
  parameters.setCacheSalt("salt");
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  const GenerationRequest& got = generator.entry(1).request;
  BOOST_TEST(got.cache_salt == "salt");
  BOOST_TEST(got.choices.size() == 2U);
  SamplingParams expected;
  expected.temperature = 0.7F;
  expected.top_p = 0.9F;
  expected.top_k = 5;
  expected.min_p = 0.1F;
  expected.repetition_penalty = 1.5F;
  expected.presence_penalty = -1;
  expected.frequency_penalty = 0.5F;
  expected.logit_bias = {{7, -3.0F}};
  expected.seed = got.choices[0].seed;  // derived from 9 and the choice's number
  expected.max_tokens = 11;
  expected.min_tokens = 3;
  expected.stop_token_ids = {kWorld};
  expected.ignore_eos = true;
  expected.logprobs = 4;
  BOOST_TEST((got.choices[0] == expected));
  BOOST_TEST(got.choices[1].seed != got.choices[0].seed);
}

BOOST_FIXTURE_TEST_CASE(a_stream_gives_chunks_as_they_come_then_its_end, RpcFixture) {
  start();
  RpcClient client(*this);
  Heard heard;
  auto request = client.completion();
  request.setSink(kj::heap<RecordingSink>(heard));
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  until([&] { return heard.texts.size() == 1; });
  generator.token(1, kWorld);
  until([&] { return heard.texts.size() == 2; });
  generator.finish(1, FinishReason::kLength);
  const auto answer = await(kj::mv(promise));
  BOOST_TEST(heard.text() == "Hello world");
  BOOST_TEST(heard.tokens == (std::vector<uint32_t>{kHello, kWorld}),
             boost::test_tools::per_element());
  BOOST_TEST(heard.ends == 1);
  BOOST_TEST(heard.errors.empty());
  BOOST_TEST(answer.getAnswer().getChoices().size() == 0U);
  BOOST_TEST(answer.getAnswer().getUsage().getCompletionTokens() == 2U);
}

BOOST_FIXTURE_TEST_CASE(an_echoed_prompt_is_scored_first, RpcFixture) {
  start();
  RpcClient client(*this);
  auto request = client.completion("hi");
  request.initParameters().setEcho(true);
  request.getParameters().setLogprobs(0);
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  generator.scores(1, {{'i', -2.0F, {}}});
  generator.token(1, kHello);
  generator.finish(1, FinishReason::kLength);
  const auto answer = await(kj::mv(promise));
  const auto choice = answer.getAnswer().getChoices()[0];
  BOOST_TEST(str(choice.getText()) == "hiHello");
  BOOST_REQUIRE(choice.getPromptTokens().size() == 2U);
  BOOST_TEST(choice.getPromptTokens()[1].getLogprob() == -2.0F);
}

BOOST_FIXTURE_TEST_CASE(dropping_the_promise_cancels, RpcFixture) {
  start();
  RpcClient client(*this);
  Heard heard;
  {
    auto request = client.completion();
    request.setSink(kj::heap<RecordingSink>(heard));
    auto promise = request.send();
    until([&] { return generator.running() == 1; });
  }
  until([&] { return generator.entry(1).cancelled; });
  until([&] { return load->generations() == 0; });
  generator.token(1, kHello);
  BOOST_TEST(await(client.serving.healthRequest().send()).getReady());
  BOOST_TEST(heard.texts.empty());
}

BOOST_FIXTURE_TEST_CASE(closing_the_connection_cancels, RpcFixture) {
  start();
  auto client = std::make_unique<RpcClient>(*this);
  auto promise = client->completion().send();
  until([&] { return generator.running() == 1; });
  BOOST_TEST(load->connections() == 1U);
  client = nullptr;
  until([&] { return generator.entry(1).cancelled; });
  until([&] { return load->connections() == 0; });
}

BOOST_FIXTURE_TEST_CASE(a_reader_that_does_not_answer_gets_joined_chunks_and_everything,
                        RpcFixture) {
  start();
  RpcClient client(*this);
  auto held = kj::newPromiseAndFulfiller<void>();
  auto hold = held.promise.fork();
  Heard slow;
  slow.hold = &hold;
  Heard fast;
  auto slow_request = client.completion();
  slow_request.initParameters().setMaxTokens(150);
  slow_request.getParameters().setLogprobs(0);
  slow_request.setSink(kj::heap<RecordingSink>(slow));
  auto slow_promise = slow_request.send();
  until([&] { return generator.running() == 1; });
  auto fast_request = client.completion();
  fast_request.initParameters().setMaxTokens(150);
  fast_request.setSink(kj::heap<RecordingSink>(fast));
  auto fast_promise = fast_request.send();
  until([&] { return generator.running() == 2; });
  // Far more than the window: each chunk is over 1 KiB by its alternatives.
  const SampledToken wide{'x', -1, std::vector<TokenLogprob>(150)};
  for (int i = 0; i < 150; ++i) {
    generator.tokens(1, {wide});
    generator.tokens(2, {wide});
    until([&] { return fast.tokens.size() == static_cast<size_t>(i + 1); });
  }
  // The other one on the same connection is not held up; this one waits in the gateway.
  BOOST_TEST(slow.tokens.size() == 1U);
  generator.finish(1, FinishReason::kLength);
  generator.finish(2, FinishReason::kLength);
  await(kj::mv(fast_promise));
  slow.hold = nullptr;
  held.fulfiller->fulfill();
  await(kj::mv(slow_promise));
  BOOST_TEST(slow.text() == fast.text());
  BOOST_TEST(slow.tokens.size() == 150U);
  BOOST_TEST(slow.texts.size() < 150U);
  BOOST_TEST(slow.ends == 1);
}

BOOST_FIXTURE_TEST_CASE(what_waits_for_a_reader_has_a_limit, RpcFixture) {
  limits.pending_bytes_max = 10'000;
  limits.abort_flush = std::chrono::milliseconds(5);
  start();
  RpcClient client(*this);
  auto held = kj::newPromiseAndFulfiller<void>();
  auto hold = held.promise.fork();
  Heard heard;
  heard.hold = &hold;
  auto request = client.completion();
  request.initParameters().setMaxTokens(150);
  request.getParameters().setLogprobs(0);
  request.setSink(kj::heap<RecordingSink>(heard));
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  const SampledToken wide{'x', -1, std::vector<TokenLogprob>(1000)};
  for (int i = 0; i < 100 && !generator.entry(1).cancelled; ++i) {
    generator.tokens(1, {wide, wide});
    await(io.provider->getTimer().afterDelay(1 * kj::MILLISECONDS));
  }
  const kj::Exception thrown = failure(kj::mv(promise));
  BOOST_TEST((thrown.getType() == kj::Exception::Type::OVERLOADED));
  BOOST_TEST(text_of(thrown).find("does not read its stream") != std::string::npos);
  BOOST_TEST(generator.entry(1).cancelled);
}

BOOST_FIXTURE_TEST_CASE(a_reader_that_never_answers_is_cut_in_time, RpcFixture) {
  limits.write_timeout = std::chrono::milliseconds(20);
  limits.abort_flush = std::chrono::milliseconds(5);
  start();
  RpcClient client(*this);
  auto held = kj::newPromiseAndFulfiller<void>();
  auto hold = held.promise.fork();
  Heard heard;
  heard.hold = &hold;
  auto request = client.completion();
  request.setSink(kj::heap<RecordingSink>(heard));
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  generator.finish(1, FinishReason::kStop);  // end() waits for the chunk before it
  const kj::Exception thrown = failure(kj::mv(promise));
  BOOST_TEST((thrown.getType() == kj::Exception::Type::OVERLOADED));
}

BOOST_FIXTURE_TEST_CASE(a_failing_sink_cancels_its_request, RpcFixture) {
  start();
  RpcClient client(*this);
  auto held = kj::newPromiseAndFulfiller<void>();
  held.fulfiller->reject(KJ_EXCEPTION(FAILED, "enough"));
  auto hold = held.promise.fork();
  Heard heard;
  heard.hold = &hold;
  auto request = client.completion();
  request.setSink(kj::heap<RecordingSink>(heard));
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  until([&] { return !heard.texts.empty(); });
  await(io.provider->getTimer().afterDelay(2 * kj::MILLISECONDS));
  generator.token(1, kWorld);
  BOOST_TEST(text_of(failure(kj::mv(promise))).find("enough") != std::string::npos);
  until([&] { return generator.entry(1).cancelled; });
}

BOOST_FIXTURE_TEST_CASE(a_worker_that_fails_ends_the_stream_with_an_error, RpcFixture) {
  start();
  RpcClient client(*this);
  Heard heard;
  auto request = client.completion();
  request.setSink(kj::heap<RecordingSink>(heard));
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  generator.token(1, kHello);
  generator.entry(1).listener->on_failed({StatusCode::kUnavailable, "the worker is gone; retry"});
  const kj::Exception thrown = failure(kj::mv(promise));
  BOOST_TEST((thrown.getType() == kj::Exception::Type::OVERLOADED));
  BOOST_TEST(text_of(thrown) == "remote exception: the worker is gone; retry");
  BOOST_REQUIRE(heard.errors.size() == 1U);
  BOOST_TEST(heard.errors[0] == "unavailable : the worker is gone; retry");
  BOOST_TEST(heard.ends == 0);
}

BOOST_FIXTURE_TEST_CASE(draining_lets_requests_finish_and_takes_no_more, RpcFixture) {
  start();
  RpcClient client(*this);
  auto promise = client.completion().send();
  until([&] { return generator.running() == 1; });
  auto drained = frontend->drain(std::chrono::seconds(5)).eagerlyEvaluate(nullptr);
  BOOST_TEST((failure(client.completion().send()).getType() == kj::Exception::Type::OVERLOADED));
  generator.token(1, kHello);
  generator.finish(1, FinishReason::kLength);
  BOOST_TEST(str(await(kj::mv(promise)).getAnswer().getChoices()[0].getText()) == "Hello");
  await(kj::mv(drained));
  BOOST_TEST(frontend->open_connections() == 0U);
}

BOOST_FIXTURE_TEST_CASE(draining_ends_what_takes_too_long, RpcFixture) {
  start();
  RpcClient client(*this);
  auto promise = client.completion().send();
  until([&] { return generator.running() == 1; });
  auto drained = frontend->drain(std::chrono::milliseconds(5)).eagerlyEvaluate(nullptr);
  const kj::Exception thrown = failure(kj::mv(promise));
  BOOST_TEST((thrown.getType() == kj::Exception::Type::OVERLOADED));
  BOOST_TEST(text_of(thrown).find("shutting down") != std::string::npos);
  await(kj::mv(drained));
}

}  // namespace
}  // namespace troupe
