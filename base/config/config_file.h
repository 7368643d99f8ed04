#pragma once
// A TOML file that several programs share, as one of them reads it.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// Of a configuration file; a larger one is refused.
inline constexpr size_t kConfigBytesMax = size_t{1} << 20;

struct FileValue {
  enum class Kind { kText, kWhole, kNumber, kTruth, kTexts, kOther };
  Kind kind = Kind::kOther;
  std::vector<std::string> texts;  // one, except of kTexts; of kOther none
  std::string place;               // "cluster.toml:12"
};

// "a text", "a whole number", …
[[nodiscard]] std::string to_string(FileValue::Kind kind);

struct ConfigFile {
  std::map<std::string, FileValue> values;  // by name
  // Tables and names that nobody knows, or that stand in the wrong place, in the file's order. Each
  // text names the line.
  std::vector<std::string> faults;
};

// The values for one program: those at the file's top, overridden by those of its table `program`.
// `own` are the names of its settings; names at the top that are none of them are left out if
// setting_names.h knows them. kNotFound: no such file. kInvalidArgument: the file is too large or
// no TOML; the message names the line.
[[nodiscard]] Result<ConfigFile> read_config_file(const std::string& path,
                                                  const std::string& program,
                                                  const std::vector<std::string>& own);

}  // namespace troupe
