#include "loadgen/url.h"

#include <charconv>
#include <string_view>

namespace troupe::loadgen {
namespace {

Status wrong(const std::string& text) {
  return invalid_argument("--url must be http://HOST[:PORT][/PATH] or https://…, not \"" + text +
                          "\"; write for example --url http://127.0.0.1:8000");
}

}  // namespace

std::string Url::host_header() const {
  const bool is_default = port == (is_tls ? 443 : 80);
  return is_default ? address().substr(0, address().rfind(':')) : address();
}

std::string Url::address() const {
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return shown + ":" + std::to_string(port);
}

Result<Url> parse_url(const std::string& text) {
  Url url;
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    url.is_tls = true;
    url.port = 443;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return wrong(text);
  }
  const size_t slash = rest.find('/');
  std::string_view place = rest.substr(0, slash);
  url.base = slash == std::string_view::npos ? "" : std::string(rest.substr(slash));
  for (const unsigned char c : text) {
    if (c <= ' ' || c > '~' || c == '?' || c == '#' || c == '@' || c == '"') return wrong(text);
  }
  if (place.starts_with('[')) {
    const size_t end = place.find(']');
    if (end == std::string_view::npos) return wrong(text);
    url.host = place.substr(1, end - 1);
    place.remove_prefix(end + 1);
  } else {
    url.host = place.substr(0, place.find(':'));
    place.remove_prefix(url.host.size());
  }
  if (url.host.empty()) return wrong(text);
  if (!place.empty()) {
    const std::string_view digits = place.substr(1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (place.front() != ':' || error != std::errc() || end != digits.data() + digits.size() ||
        url.port == 0) {
      return wrong(text);
    }
  }
  while (url.base.ends_with('/')) url.base.pop_back();
  if (url.base.ends_with("/v1")) url.base.resize(url.base.size() - 3);
  while (url.base.ends_with('/')) url.base.pop_back();
  return url;
}

}  // namespace troupe::loadgen
