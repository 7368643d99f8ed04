#pragma once
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

// A structural tag (free text with forced parts) in xgrammar's JSON form, `{"type":
// "structural_tag", "format": …}` or the older one with `structures` and `triggers`, with every
// schema, expression and grammar in it checked and written out as a grammar. kInvalidArgument:
// `param` is the place in the tag. Formats: const_string, any_text, json_schema, regex, grammar,
// sequence, or, optional, plus, star, repeat, tag, triggered_tags, tags_with_separator, and those
// that name tokens: token, exclude_token, any_tokens, token_triggered_tags.
[[nodiscard]] Result<std::string> lower_structural_tag(std::string_view text);

}  // namespace troupe
