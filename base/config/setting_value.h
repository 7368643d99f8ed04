#pragma once
// Texts to values of settings and back, with the rules of each.

#include <string>
#include <vector>

#include "base/config/settings.h"

namespace troupe {

// "a whole number from 0 to 1024", "one of cpu, reference".
[[nodiscard]] std::string rule_of(const Setting& setting, const SettingTarget& target);

// What --help shows behind the flag: "UINT in [0 - 1024]".
[[nodiscard]] std::string type_label(const Setting& setting, const SettingTarget& target);

// Writes the value that `texts` spell (one text, except for lists). kInvalidArgument: they break
// the rule; `subject` names where they stand and what they set, e.g. "cluster.toml:12: threads".
[[nodiscard]] Status assign(const Setting& setting, const SettingTarget& target,
                            const std::string& subject, const std::vector<std::string>& texts);

// The value as TOML writes it, and as a flag takes it; empty for an optional that is.
[[nodiscard]] std::string toml_of(const SettingTarget& target);
[[nodiscard]] std::string flag_text_of(const SettingTarget& target);

// "a,b" -> {"a", "b"}; white space around each is dropped, an empty text gives an empty list.
[[nodiscard]] std::vector<std::string> split_list(const std::string& text);

// A text as TOML's basic string, with its quotes.
[[nodiscard]] std::string quoted(const std::string& text);

}  // namespace troupe
