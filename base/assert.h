#pragma once
// Assertions that stay on in release builds and print their operands.
//
//   TROUPE_ASSERT(refs > 0, block, refs);   // aborts: "refs > 0 [block, refs = 7, 0] at file:line"
//   TROUPE_DCHECK(is_sorted(v));            // O(n) checks: on in debug, sanitizer and simulation
//   builds

#include <sstream>
#include <string>

namespace troupe {

[[noreturn]] void assertion_failed(const char* condition, const char* names,
                                   const std::string& values, const char* file, int line);

template <class... Values>
std::string print_operands(const Values&... values) {
  std::ostringstream out;
  [[maybe_unused]] const char* separator = "";
  ((out << separator << values, separator = ", "), ...);
  return out.str();
}

}  // namespace troupe

#define TROUPE_ASSERT(condition, ...)                         \
  (static_cast<bool>(condition)                               \
       ? static_cast<void>(0)                                 \
       : ::troupe::assertion_failed(#condition, #__VA_ARGS__, \
                                    ::troupe::print_operands(__VA_ARGS__), __FILE__, __LINE__))

#if !defined(NDEBUG) || defined(TROUPE_SIMULATION)
#define TROUPE_DCHECK(condition, ...) TROUPE_ASSERT(condition, __VA_ARGS__)
#else
#define TROUPE_DCHECK(condition, ...) static_cast<void>(0)
#endif
