// Compiles any bytes as a chat template and renders it: whatever comes, it must end in a Status or
// in pieces that hold to their contract, never in a crash, and within the limits.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "engine/chat_template/chat_context.h"
#include "engine/chat_template/chat_template.h"

namespace {

using troupe::ChatMessage;
using troupe::TemplateValue;

TemplateValue conversation() {
  std::vector<ChatMessage> messages(3);
  messages[0].role = "system";
  messages[0].content = TemplateValue::data("Sé breve. 🙂");
  messages[1].role = "user";
  messages[1].content = TemplateValue::data(" a,b\n<|im_end|> ");
  messages[2].role = "assistant";
  messages[2].tool_calls = TemplateValue::list({TemplateValue::dict(
      {{"name", TemplateValue::data("f")}, {"arguments", TemplateValue::integer(-7)}})});
  troupe::ChatContextOptions options;
  options.bos_token = "<s>";
  options.extra.emplace_back("x", TemplateValue::number(2.5));
  return make_chat_context(messages, options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Small limits, so that each is reached and no input takes long.
  troupe::ChatTemplateLimits limits;
  limits.source_bytes_max = 4096;
  limits.nesting_max = 40;
  limits.eval_depth_max = 120;
  limits.value_depth_max = 20;
  limits.steps_max = 20'000;
  limits.output_bytes_max = 1 << 16;
  limits.work_bytes_max = 1 << 20;
  limits.range_max = 1000;
  const auto compiled =
      troupe::ChatTemplate::compile(std::string(reinterpret_cast<const char*>(data), size), limits);
  if (!compiled.ok()) {
    TROUPE_ASSERT(!compiled.status().message().empty(), size);
    return 0;
  }
  const auto pieces = compiled.value().render(conversation(), 1'700'000'000);
  if (!pieces.ok()) return 0;  // raise_exception('') may fail with an empty message
  size_t bytes = 0;
  for (size_t i = 0; i < pieces.value().size(); ++i) {
    const troupe::TemplatePiece& piece = pieces.value()[i];
    TROUPE_ASSERT(!piece.text.empty(), i);
    TROUPE_ASSERT(i == 0 || piece.from_template != pieces.value()[i - 1].from_template, i);
    bytes += piece.text.size();
  }
  TROUPE_ASSERT(bytes <= limits.output_bytes_max, bytes);
  return 0;
}
