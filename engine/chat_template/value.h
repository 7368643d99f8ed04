#pragma once
// What a template computes with, and what a caller hands it: Python's none, bool, int, float, str,
// list, tuple and dict, as far as templates can tell.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/chat_template/text.h"

namespace troupe {

namespace chat_template {
struct Namespace;  // what namespace() makes; these four exist only while a template renders
struct Macro;
struct LoopState;
enum class FunctionId : uint8_t;
}  // namespace chat_template

// Immutable, cheap to copy (containers and text are shared), safe to share between threads.
class TemplateValue {
 public:
  using List = std::vector<TemplateValue>;
  // In order of insertion; keys are unique, none of them a container.
  using Dict = std::vector<std::pair<TemplateValue, TemplateValue>>;

  enum class Kind : uint8_t {
    kUndefined,  // a name or key that does not exist: prints nothing, is false, has no attributes
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kList,
    kTuple,  // a list that prints with parentheses and equals no list
    kDict,
    kNamespace,  // from here on only inside a render
    kMacro,
    kLoop,
    kFunction,
  };

  TemplateValue() = default;  // undefined
  static TemplateValue none();
  static TemplateValue boolean(bool value);
  static TemplateValue integer(int64_t value);
  static TemplateValue number(double value);
  // Text of the conversation: control tokens spelled in it stay text.
  static TemplateValue data(std::string text);
  // Text that the model file vouches for, e.g. its bos token: may hold control tokens.
  static TemplateValue markup(std::string text);
  static TemplateValue text(TemplateText text);
  static TemplateValue list(List elements);
  static TemplateValue tuple(List elements);
  // A key given twice keeps its first place and its last value, as in Python. Keys of the first
  // form are data.
  static TemplateValue dict(std::vector<std::pair<std::string, TemplateValue>> entries);
  static TemplateValue dict(Dict entries);
  // `namespace_value`, `macro` and `loop` outlive every copy of the value; the renderer owns them.
  static TemplateValue of(chat_template::Namespace* namespace_value);
  static TemplateValue of(const chat_template::Macro* macro);
  static TemplateValue of(chat_template::LoopState* loop);
  static TemplateValue of(chat_template::FunctionId function);

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(payload_.index()); }
  [[nodiscard]] bool is(Kind kind) const { return this->kind() == kind; }
  // A list or a tuple.
  [[nodiscard]] bool is_array() const { return is(Kind::kList) || is(Kind::kTuple); }
  [[nodiscard]] bool is_number() const {
    return is(Kind::kInt) || is(Kind::kFloat) || is(Kind::kBool);
  }

  // Each of these asserts the kind.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] int64_t as_int() const;    // kInt, or kBool as 0 and 1
  [[nodiscard]] double as_number() const;  // kFloat, kInt or kBool
  [[nodiscard]] const TemplateText& as_text() const;
  [[nodiscard]] const List& as_list() const;  // kList or kTuple
  [[nodiscard]] const Dict& as_dict() const;
  [[nodiscard]] chat_template::Namespace& as_namespace() const;
  [[nodiscard]] const chat_template::Macro& as_macro() const;
  [[nodiscard]] chat_template::LoopState& as_loop() const;
  [[nodiscard]] chat_template::FunctionId as_function() const;

  // The entry of a dict under a text key, or nullptr. Linear in the number of entries.
  [[nodiscard]] const TemplateValue* find(std::string_view key) const;

  // 0 for scalars and text, else 1 + the deepest element.
  [[nodiscard]] uint32_t depth() const;
  // Python's truth: false for undefined, none, 0, "" and empty containers.
  [[nodiscard]] bool truthy() const;
  // Python's type name, for error messages: "str", "list", "NoneType", …
  [[nodiscard]] std::string_view type_name() const;

 private:
  struct Array {
    List elements;
    uint32_t depth;
  };
  struct Table {
    Dict entries;
    uint32_t depth;
  };
  struct TupleRef {
    std::shared_ptr<const Array> array;
  };
  // In the order of Kind.
  using Payload = std::variant<std::monostate, std::nullptr_t, bool, int64_t, double,
                               std::shared_ptr<const TemplateText>, std::shared_ptr<const Array>,
                               TupleRef, std::shared_ptr<const Table>, chat_template::Namespace*,
                               const chat_template::Macro*, chat_template::LoopState*,
                               chat_template::FunctionId>;

  template <class T>
  static TemplateValue from(T payload);
  static std::shared_ptr<const Array> make_array(List elements);

  Payload payload_;
};

}  // namespace troupe
