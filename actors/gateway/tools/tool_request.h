#pragma once
// The tools that a request offers to the model and how free the model is in using them. Made by the
// parsers of each protocol, all in this one form.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe {

struct Tool {
  std::string name;         // 1 to 64 of A-Z a-z 0-9 _ -
  std::string description;  // possibly empty
  // A JSON Schema of type object; an object without members where the client gave none.
  nlohmann::ordered_json parameters = nlohmann::ordered_json::object();
  bool strict = false;  // arguments are held to `parameters` by grammar even if the choice is kAuto
  std::string path;     // of its parameters in the client's body, for errors
};

enum class ToolChoice {
  kNone,      // no calls: the tools are not shown to the model
  kAuto,      // text, calls or both
  kRequired,  // at least one call of any tool, and no text
  kNamed,     // at least one call of ToolRequest::name, and no text
};

struct ToolRequest {
  std::vector<Tool> tools;  // names differ
  ToolChoice choice = ToolChoice::kNone;
  std::string name;      // kNamed: one of `tools`
  bool parallel = true;  // more than one call in one answer

  // Whether calls may come. Then `tools` is not empty.
  [[nodiscard]] bool on() const { return choice != ToolChoice::kNone; }
};

}  // namespace troupe
