#include "base/metrics/serving_metrics.h"

#include <boost/test/unit_test.hpp>

#include "base/metrics/model_metrics.h"

namespace troupe {
namespace {

BOOST_AUTO_TEST_SUITE(serving_metrics)

// Dashboards made for vLLM look for these; each exists before its first event.
BOOST_AUTO_TEST_CASE(every_name_that_dashboards_expect_is_there_from_the_start) {
  const std::string page = ServingMetrics("some-model").serialize();
  for (const char* name : {"vllm:num_requests_running{",
                           "vllm:num_requests_waiting{",
                           "vllm:kv_cache_usage_perc{",
                           "vllm:prefix_cache_queries_total{",
                           "vllm:prefix_cache_hits_total{",
                           "vllm:num_preemptions_total{",
                           "vllm:prompt_tokens_total{",
                           "vllm:generation_tokens_total{",
                           "vllm:time_to_first_token_seconds_bucket{",
                           "vllm:inter_token_latency_seconds_bucket{",
                           "vllm:e2e_request_latency_seconds_bucket{",
                           "vllm:request_queue_time_seconds_bucket{",
                           "vllm:request_inference_time_seconds_bucket{",
                           "vllm:request_prefill_time_seconds_bucket{",
                           "vllm:request_decode_time_seconds_bucket{",
                           "vllm:request_prompt_tokens_bucket{",
                           "vllm:request_generation_tokens_bucket{",
                           "vllm:iteration_tokens_total_bucket{",
                           "vllm:request_params_n_bucket{",
                           "vllm:request_params_max_tokens_bucket{"}) {
    BOOST_TEST(page.find(name) != std::string::npos, "missing: " << name);
  }
  for (const char* reason : {"stop", "length", "abort", "error"}) {
    BOOST_TEST(page.find(std::string("finished_reason=\"") + reason + '"') != std::string::npos);
  }
  BOOST_TEST(page.find("model_name=\"some-model\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_count_shows_on_the_page) {
  ServingMetrics metrics("m");
  metrics.generation_tokens.Increment(3);
  metrics.finished_stop.Increment();
  const std::string page = metrics.serialize();
  BOOST_TEST(page.find("vllm:generation_tokens_total{engine=\"0\",model_name=\"m\"} 3") !=
             std::string::npos);
  BOOST_TEST(page.find("finished_reason=\"stop\",model_name=\"m\"} 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(how_kv_is_kept_is_told_of_models_that_keep_some_and_disturbs_no_other_family) {
  ModelMetrics models;
  models.add("a", "small").describe_kv(16, 77, "int8");
  models.add("b", "none").generation_tokens.Increment();
  models.add("c", "large").describe_kv(16, 5, "f16");
  const std::string page = models.serialize();
  const auto says = [&](const std::string& line) { return page.find(line) != std::string::npos; };
  BOOST_TEST(
      says("vllm:cache_config_info{block_size=\"16\",cache_dtype=\"int8\",engine=\"0\","
           "model_name=\"small\",num_gpu_blocks=\"77\"} 1\n"));
  BOOST_TEST(
      says("cache_dtype=\"f16\",engine=\"0\",model_name=\"large\",num_gpu_blocks=\"5\"} 1\n"));
  BOOST_TEST(!says("cache_dtype=\"\""));
  BOOST_TEST(says("vllm:generation_tokens_total{engine=\"0\",model_name=\"none\"} 1\n"));
}

BOOST_AUTO_TEST_CASE(a_model_that_becomes_known_later_names_every_sample) {
  ServingMetrics metrics("");
  metrics.generation_tokens.Increment();
  BOOST_TEST(metrics.serialize().find("model_name=\"later\"") == std::string::npos);
  metrics.set_model_name("later");
  const std::string page = metrics.serialize();
  BOOST_TEST(page.find("vllm:generation_tokens_total{engine=\"0\",model_name=\"later\"} 1") !=
             std::string::npos);
  BOOST_TEST(page.find("model_name=\"\"") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(several_models_stand_on_one_page_with_each_name_declared_once) {
  ModelMetrics metrics;
  BOOST_TEST(metrics.serialize().find("vllm:generation_tokens_total{") != std::string::npos);
  metrics.add("d1", "one").generation_tokens.Increment(3);
  metrics.add("d2", "two");
  metrics.of("d2").generation_tokens.Increment(4);
  metrics.add("d1", "another name");  // the first stays
  const std::string page = metrics.serialize();
  const auto count = [&page](const std::string& text) {
    size_t found = 0;
    for (size_t at = page.find(text); at != std::string::npos; at = page.find(text, at + 1))
      ++found;
    return found;
  };
  BOOST_TEST(count("# TYPE vllm:generation_tokens_total ") == 1U);
  BOOST_TEST(count("# HELP vllm:generation_tokens_total ") == 1U);
  BOOST_TEST(count("vllm:generation_tokens_total{engine=\"0\",model_name=\"one\"} 3") == 1U);
  BOOST_TEST(count("vllm:generation_tokens_total{engine=\"0\",model_name=\"two\"} 4") == 1U);
  BOOST_TEST(count("model_name=\"\"") == 0U);
  metrics.of("d3").finished_error.Increment();  // known by nobody, yet counted
  BOOST_TEST(metrics.serialize().find("model_name=\"\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
