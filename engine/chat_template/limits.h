#pragma once
// What a chat template may cost. A template comes out of a model file and is foreign input, and so
// is the conversation; whatever they do, compiling and rendering end within these bounds.

#include <cstdint>

namespace troupe {

// Exceeding a limit is an error that names the field. The defaults leave real templates (tens of
// kilobytes, conversations of thousands of messages) a wide margin and stop a hostile one in about
// a second.
struct ChatTemplateLimits {
  uint64_t source_bytes_max = 1 << 20;  // the template's source
  uint32_t nesting_max = 100;           // depth of the syntax tree; bounds the parser's recursion
  uint32_t eval_depth_max = 500;   // nested evaluations, macro calls included: bounds the stack
  uint32_t value_depth_max = 100;  // lists in dicts in lists …, in the context or built
  uint64_t steps_max = 5'000'000;  // evaluated nodes and visited elements of one render
  uint64_t output_bytes_max = 16 << 20;  // rendered text, and each text that is put together
  uint64_t work_bytes_max = 512 << 20;   // bytes copied or scanned in one render, all together
  int64_t range_max = 100'000;           // elements of one range(); as in jinja2's sandbox
};

}  // namespace troupe
