#include "tests/unit/actors/gateway/openai/tiny_model.h"

#include <boost/test/unit_test.hpp>

namespace troupe::test {

namespace {

constexpr const char* kTemplate =
    "{% for message in messages %}"
    "{% if message['role'] == 'tool' and loop.first %}"
    "{{ raise_exception('a conversation cannot start with a tool') }}"
    "{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

ChatTemplate compile_template(const std::string& source) {
  Result<ChatTemplate> compiled = ChatTemplate::compile(source);
  BOOST_REQUIRE_MESSAGE(compiled.ok(), compiled.status().message());
  return std::move(compiled).value();
}

}  // namespace

TinyModel::TinyModel() : TinyModel(kTemplate) {}

TinyModel::TinyModel(const std::string& chat_template, RequestTemplates request_templates,
                     std::optional<ToolFormat> tool_format)
    : tokenizer_(make_tiny_tokenizer()),
      template_(compile_template(chat_template)),
      without_template_{"tiny", kTinyContext, 1700000000, *tokenizer_, nullptr} {
  const Status added = catalogue_.add({"tiny", kTinyContext, 1700000000, *tokenizer_, &template_,
                                       nullptr, request_templates, tool_format});
  BOOST_REQUIRE_MESSAGE(added.ok(), added.message());
}

}  // namespace troupe::test
