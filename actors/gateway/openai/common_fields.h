#pragma once
// What the parsers of several endpoints' bodies share.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/openai/request.h"
#include "troupe/status.h"

namespace troupe {

// A body's text as a JSON object. kInvalidArgument, also for a number that JSON does not have,
// such as NaN: then with the rule of the field that it was given for.
[[nodiscard]] Result<RequestDocument> parse_object(std::string_view body);

enum class ModelField { kRequired, kOptionalIfOne };

// The index of the model that the body names. kNotFound lists what there is.
[[nodiscard]] Result<size_t> find_model(const FieldReader& fields,
                                        std::span<const RequestRules> models, ModelField rule);

// The fields that all generating endpoints share; out.api is set before.
[[nodiscard]] Status parse_common(const FieldReader& fields, const RequestRules& rules,
                                  GenerationBody& out);

// cache_salt and priority, which all endpoints that compute have.
[[nodiscard]] Status parse_cache_salt(const FieldReader& fields, std::string& out);
[[nodiscard]] Status check_priority(const FieldReader& fields);

// An array of ids, each in the model's vocabulary; `path` names it in errors.
[[nodiscard]] Result<std::vector<TokenId>> parse_token_array(const nlohmann::ordered_json& array,
                                                             const std::string& path,
                                                             const RequestRules& rules);

}  // namespace troupe
