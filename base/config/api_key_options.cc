#include "base/config/api_key_options.h"

#include <algorithm>
#include <sstream>

#include "base/config/private_file.h"

namespace troupe {
namespace {

// Visible ASCII without the space, so that it can stand in a header.
bool is_key_character(char c) {
  return c > ' ' && c <= '~';
}

Status check_key(const std::string& key, const std::string& source) {
  if (key.size() < kApiKeyBytesMin || key.size() > kApiKeyBytesMax ||
      !std::all_of(key.begin(), key.end(), is_key_character)) {
    return invalid_argument(source + " has a key that cannot be one: a key has " +
                            std::to_string(kApiKeyBytesMin) + " to " +
                            std::to_string(kApiKeyBytesMax) +
                            " visible ASCII characters without spaces; make one with: head -c 24 "
                            "/dev/urandom | base64");
  }
  return ok_status();
}

Result<std::vector<std::string>> parse_file(const std::string& text, const std::string& path) {
  std::vector<std::string> keys;
  std::istringstream lines(text);
  std::string line;
  for (size_t number = 1; std::getline(lines, line); ++number) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.empty() || line[0] == '#') continue;
    TROUPE_RETURN_IF_ERROR(check_key(line, "api-key-file " + path + ":" + std::to_string(number)));
    keys.push_back(line);
  }
  // A file of comments alone must not open the server to everybody.
  if (keys.empty()) {
    return invalid_argument("api-key-file " + path +
                            " has no key; put one key on each line, or do without the file");
  }
  return keys;
}

}  // namespace

void add_api_key_settings(Settings& settings, ApiKeyOptions& options) {
  settings.add({.name = "api-key",
                .help = "A key that clients must send; may be repeated. Every user of this machine "
                        "sees flags: prefer the file or the variable",
                .secret = true,
                .secret_flag = true},
               &options.keys);
  settings.add(
      {.name = "api-key-file", .help = "File with such keys, one a line; read anew on SIGHUP"},
      &options.file);
}

Result<std::vector<std::string>> read_api_keys(const ApiKeyOptions& options) {
  std::vector<std::string> keys = options.keys;
  for (const std::string& key : keys) TROUPE_RETURN_IF_ERROR(check_key(key, "api-key"));
  if (!options.file.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const std::string text,
                            read_private_file(options.file, "api-key-file", kApiKeyFileBytesMax,
                                              "name a file that this user may read"));
    TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> more, parse_file(text, options.file));
    keys.insert(keys.end(), more.begin(), more.end());
  }
  if (keys.size() > kApiKeysMax) {
    return invalid_argument("there are " + std::to_string(keys.size()) + " API keys; at most " +
                            std::to_string(kApiKeysMax) + " are allowed");
  }
  return keys;
}

}  // namespace troupe
