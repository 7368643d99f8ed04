#include "loadgen/report.h"

#include <boost/test/unit_test.hpp>

#include <sstream>
#include <vector>

namespace troupe::loadgen {
namespace {

using std::chrono::milliseconds;

std::deque<RequestRecord> some_records(size_t count) {
  std::deque<RequestRecord> records;
  for (size_t i = 0; i < count; ++i) {
    RequestRecord& record = records.emplace_back();
    record.index = i;
    record.start = record.scheduled = milliseconds(10 * i);
    if (i % 7 == 3) {
      record.ending = Ending::kFailed;
      record.error = "cut";
      record.detail = "a <b> & \"c\"";
      continue;
    }
    record.ending = Ending::kOk;
    record.chunks = {milliseconds(20 + i % 5), milliseconds(30 + i % 5)};
    record.first_text = record.chunks[0];
    record.output_tokens = record.output_tokens_aimed = 2;
    record.token_source = TokenSource::kUsage;
  }
  return records;
}

Report report_of(const std::deque<RequestRecord>& records) {
  Report report;
  report.title = "a <model> & \"name\"\x01 at http://h";
  report.measures = measure(records, std::chrono::seconds(3), {});
  report.client = judge({}, report.measures);
  return report;
}

// Whether every element is closed in order, every attribute quoted, and no text has a bare sign.
// A reader of the subset of XML that the pictures use.
std::string fault_of_xml(const std::string& text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '&' && text.find(';', at) > at + 5) return "bare & at " + text.substr(at, 20);
    if (text[at] != '<') {
      ++at;
      continue;
    }
    bool quoted = false;
    size_t end = at + 1;
    for (; end < text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return "< within a tag: " + text.substr(at, 40);
    }
    if (end == text.size()) return "a tag without end";
    const std::string tag = text.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

BOOST_AUTO_TEST_SUITE(report)

BOOST_AUTO_TEST_CASE(pictures_are_well_formed_for_any_run) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{300}, size_t{9000}}) {
    const auto records = some_records(count);
    const std::string svg = svg_of(report_of(records), records);
    BOOST_TEST(fault_of_xml(svg) == "");
    BOOST_TEST(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    BOOST_TEST(svg.find("nan") == std::string::npos);
    BOOST_TEST(svg.find("inf") == std::string::npos);
    BOOST_TEST(svg.find("a &lt;model&gt; &amp;") != std::string::npos);
    BOOST_TEST(svg.size() < 2'000'000U);
  }
  BOOST_TEST(fault_of_xml("<a><b></a>") != "");
}

BOOST_AUTO_TEST_CASE(a_picture_has_a_mark_for_every_request) {
  const auto records = some_records(70);
  const std::string svg = svg_of(report_of(records), records);
  const auto count = [&](const std::string& what) {
    size_t found = 0;
    for (size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  BOOST_TEST(count("href=\"#ttft\"") == 61U);  // one in the legend
  BOOST_TEST(count("href=\"#e2e\"") == 61U);
  BOOST_TEST(count("href=\"#failed\"") == 11U);
  BOOST_TEST(count("E2E p99") == 1U);
}

BOOST_AUTO_TEST_CASE(json_has_the_names_of_vllm_and_the_table_the_same_figures) {
  const auto records = some_records(14);
  const Report report = report_of(records);
  const auto json = json_of(report);
  for (const char* key : {"duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "max_output_tokens_per_s",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "mean_tpot_ms",
                          "p99_tpot_ms",
                          "mean_itl_ms",
                          "mean_e2el_ms",
                          "p90_e2el_ms",
                          "client",
                          "config",
                          "environment",
                          "warnings",
                          "errors"}) {
    BOOST_TEST(json.contains(key), key);
  }
  BOOST_TEST(json["completed"] == 12);
  BOOST_TEST(json["errors"]["cut"]["count"] == 2);
  BOOST_TEST(json["request_goodput"].is_null());
  const std::string table = table_of(report);
  BOOST_TEST(table.find("12 completed, 2 failed") != std::string::npos, table);
  BOOST_TEST(table.find("failed: 2 x cut") != std::string::npos, table);
}

BOOST_AUTO_TEST_CASE(every_record_is_a_line_of_json) {
  std::istringstream lines(json_lines_of(some_records(14)));
  std::string line;
  size_t count = 0;
  for (; std::getline(lines, line); ++count) {
    const auto json = nlohmann::json::parse(line);
    BOOST_TEST(json["index"] == count);
    BOOST_TEST(json.contains(count % 7 == 3 ? "error" : "ttft_ms"));
  }
  BOOST_TEST(count == 14U);
}

BOOST_AUTO_TEST_CASE(what_a_reader_has_to_know_is_said) {
  auto records = some_records(4);
  records[0].token_source = TokenSource::kChunks;
  records[1].token_source = TokenSource::kTokenize;
  records[1].output_tokens = 1;
  for (auto& record : records) record.first_text += milliseconds(30);
  Report report = report_of(records);
  report.client = judge({{50, 60}, 0.99, {}}, report.measures);
  report.was_interrupted = true;
  const auto warnings = warnings_of(report);
  BOOST_TEST(warnings.size() == 7U);
  BOOST_TEST(warnings[0].find("the client was the bottleneck") == 0U);
  BOOST_TEST(warnings_of(report_of(some_records(2))).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
