#pragma once
// tools, tool_choice and parallel_tool_calls of a request, checked.

#include <nlohmann/json.hpp>
#include <string>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/tools/tool_request.h"
#include "troupe/status.h"

namespace troupe {

// The three fields in the form of chat completions. An empty `tools` is as if absent; the choice is
// then kNone. kInvalidArgument for one that asks for calls without tools, or names a tool that is
// not offered; kUnsupported for tools that are no functions.
[[nodiscard]] Result<ToolRequest> parse_tools(const FieldReader& fields);

// For protocols that spell tools otherwise.
//
// Reads name, description, `schema_field` and strict of the object of one function. Other fields
// are the caller's to check.
[[nodiscard]] Result<Tool> parse_function_tool(const FieldReader& function,
                                               const char* schema_field);
// At most kToolsMax, and no name twice; `path` is that of the array.
[[nodiscard]] Status check_tool_list(const std::vector<Tool>& tools, const std::string& path);
// A choice of calls needs tools, and a named one its tool; `path` is that of the choice.
[[nodiscard]] Status check_tool_choice(const ToolRequest& request, const std::string& path);

// The variable `tools` of chat templates, in the form that they all know; null when there are no
// tools to show.
[[nodiscard]] nlohmann::ordered_json tools_for_template(const ToolRequest& request);

// Whether the arguments of each call that is to be valid can be held to their schema. The error's
// param is the place in the schema of the tool.
[[nodiscard]] Status check_tool_schemas(const ToolRequest& request);

}  // namespace troupe
