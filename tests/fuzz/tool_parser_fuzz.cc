// Reads any text as an answer, cut in three ways: the parts must be the same, and well-formed. The
// first byte of the input chooses the format, the second how the text is cut; the rest is the text.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/tools/answer_parser.h"
#include "base/assert.h"

namespace {

using troupe::AnswerParser;
using troupe::AnswerParserOptions;
using troupe::AnswerPart;
using enum troupe::AnswerPartKind;

AnswerParserOptions options_of(uint8_t choice) {
  AnswerParserOptions options;
  options.format.tools = static_cast<troupe::ToolFormat>(choice % 5);
  if ((choice & 8U) != 0) options.format.reasoning = troupe::ReasoningFormat::kThink;
  if ((choice & 16U) != 0) options.prompt_end = troupe::PromptEnd::kInsideReasoning;
  if ((choice & 32U) != 0) options.stops = {"\n\n", "stop", "top"};
  options.stop_in_reasoning = (choice & 64U) != 0;
  options.one_call = (choice & 128U) != 0;
  options.tool_names = {"f", "get"};
  options.response_id = "chatcmpl-1";
  return options;
}

// Not guided: what a grammar would rule out may then come in any order.
std::vector<AnswerPart> read(const AnswerParserOptions& options, std::string_view text,
                             size_t piece_size) {
  AnswerParser parser(options);
  std::vector<AnswerPart> parts;  // the parser joins what goes on
  while (!text.empty() && !parser.stopped()) {
    parser.push(text.substr(0, piece_size), parts);
    text.remove_prefix(std::min(piece_size, text.size()));
  }
  if (!parser.stopped()) parser.finish(parts);
  return parts;
}

void check_order(const std::vector<AnswerPart>& parts) {
  uint32_t calls = 0;
  bool open = false;
  bool text_came = false;
  std::string arguments;
  for (const AnswerPart& part : parts) {
    switch (part.kind) {
      case kReasoning:
        TROUPE_ASSERT(!text_came && !open && calls == 0 && !part.text.empty());
        break;
      case kText:
        TROUPE_ASSERT(!open && !part.text.empty());
        text_came = true;
        break;
      case kCallStarted:
        TROUPE_ASSERT(!open && part.call == calls && (part.text == "f" || part.text == "get"));
        open = true;
        arguments.clear();
        ++calls;
        break;
      case kCallArguments:
        TROUPE_ASSERT(open && part.call + 1 == calls && !part.text.empty());
        arguments += part.text;
        break;
      case kCallFinished:
        TROUPE_ASSERT(open && part.call + 1 == calls);
        open = false;
        TROUPE_ASSERT(!arguments.empty() && arguments.front() == '{' && arguments.back() == '}');
        break;
    }
  }
  TROUPE_ASSERT(!open, calls);  // an unguided call is shown whole or not at all
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const AnswerParserOptions options = options_of(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::vector<AnswerPart> whole = read(options, text, text.size() + 1);
  check_order(whole);
  TROUPE_ASSERT(read(options, text, 1) == whole, text);
  TROUPE_ASSERT(read(options, text, 2 + data[1] % 32) == whole, text);
  // A guided one may leave a call open, but never breaks.
  AnswerParserOptions guided = options;
  guided.guided = true;
  TROUPE_ASSERT(read(guided, text, 1) == read(guided, text, text.size() + 1), text);
  return 0;
}
