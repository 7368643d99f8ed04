#include "engine/chat_template/template_traits.h"

#include <algorithm>
#include <array>
#include <map>

#include "engine/chat_template/ast.h"
#include "engine/chat_template/ast_walk.h"

namespace troupe {
namespace {

using namespace chat_template;
using Kind = TemplateValue::Kind;

const std::string* literal_text(const Expr& expr) {
  const auto* literal = std::get_if<Literal>(&expr.node);
  if (literal == nullptr || !literal->value.is(Kind::kText)) return nullptr;
  return &literal->value.as_text().bytes();
}

// Follows the contents of messages through assignments, macro arguments and loops: which names of
// the template may hold one. Names are not told apart by scope, which errs towards finding a loop.
class ContentUse {
 public:
  explicit ContentUse(const Body& body) {
    // Each round follows one more assignment; the chains of real templates have one or two.
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      const size_t known = names_.size();
      walk(body, {[this](const Statement& statement) { follow(statement); },
                  [this](const Expr& expr) { follow(expr); }});
      if (names_.size() == known) break;
    }
  }

  [[nodiscard]] ContentFormat format() const {
    if (!is_iterated_) return ContentFormat::kText;
    return is_tested_ ? ContentFormat::kTextOrParts : ContentFormat::kParts;
  }

 private:
  // Whether the value of `expr` may be a message's content, whole.
  [[nodiscard]] bool is_content(const Expr& expr) const {
    if (const auto* variable = std::get_if<Variable>(&expr.node)) {
      return names_.contains(variable->name);
    }
    if (const auto* attribute = std::get_if<Attribute>(&expr.node)) {
      return attribute->name == "content";
    }
    if (const auto* subscript = std::get_if<Subscript>(&expr.node)) {
      const std::string* key = literal_text(*subscript->index);
      return key != nullptr && *key == "content";
    }
    if (const auto* call = std::get_if<MethodCall>(&expr.node)) {
      if (call->name != "get" || call->arguments.positional.empty()) return false;
      const std::string* key = literal_text(*call->arguments.positional[0]);
      return key != nullptr && *key == "content";
    }
    if (const auto* filter = std::get_if<FilterCall>(&expr.node)) {
      // Those that leave a list of parts one.
      static constexpr std::array kKept = {"default", "d",      "list",       "selectattr",
                                           "reverse", "select", "rejectattr", "reject"};
      return std::ranges::count(kKept, filter->name) > 0 && is_content(*filter->input);
    }
    if (const auto* conditional = std::get_if<Conditional>(&expr.node)) {
      return is_content(*conditional->then) ||
             (conditional->otherwise && is_content(*conditional->otherwise));
    }
    if (const auto* logical = std::get_if<Logical>(&expr.node)) {
      return is_content(*logical->left) || is_content(*logical->right);
    }
    return false;
  }

  void follow(const Statement& statement) {
    if (const auto* set = std::get_if<Set>(&statement.node)) {
      if (set->target.elements.empty() && set->target.attribute.empty() &&
          is_content(*set->value)) {
        names_.insert(set->target.name);
      }
    } else if (const auto* with = std::get_if<With>(&statement.node)) {
      for (const auto& [target, value] : with->variables) {
        if (target.elements.empty() && is_content(*value)) names_.insert(target.name);
      }
    } else if (const auto* macro = std::get_if<MacroDefinition>(&statement.node)) {
      macros_[macro->name] = macro;
    } else if (const auto* loop = std::get_if<For>(&statement.node)) {
      if (is_content(*loop->iterable)) is_iterated_ = true;
    }
  }

  void follow(const Expr& expr) {
    if (const auto* call = std::get_if<FunctionCall>(&expr.node)) {
      const auto macro = macros_.find(call->name);
      if (macro == macros_.end()) return;
      const auto& parameters = macro->second->parameters;
      const auto& arguments = call->arguments;
      for (size_t i = 0; i < std::min(parameters.size(), arguments.positional.size()); ++i) {
        if (is_content(*arguments.positional[i])) names_.insert(parameters[i].name);
      }
      for (const auto& [name, value] : arguments.named) {
        if (is_content(*value)) names_.insert(name);
      }
    } else if (const auto* test = std::get_if<TestCall>(&expr.node)) {
      static constexpr std::array kTypes = {"string", "mapping", "iterable", "sequence"};
      if (std::ranges::count(kTypes, test->name) > 0 && is_content(*test->input)) {
        is_tested_ = true;
      }
    }
  }

  std::set<std::string, std::less<>> names_;
  std::map<std::string, const MacroDefinition*, std::less<>> macros_;
  bool is_iterated_ = false;
  bool is_tested_ = false;
};

}  // namespace

TemplateTraits::TemplateTraits(const Program& program)
    : variables_(program.variables.begin(), program.variables.end()),
      content_format_(ContentUse(program.body).format()) {
  walk(program.body, {[this](const Statement& statement) {
                        if (const auto* text = std::get_if<TextOutput>(&statement.node)) {
                          printed_.push_back(text->text.as_text().bytes());
                        }
                      },
                      [this](const Expr& expr) {
                        if (const std::string* text = literal_text(expr)) literals_.insert(*text);
                        if (const auto* attribute = std::get_if<Attribute>(&expr.node)) {
                          attributes_.insert(attribute->name);
                        }
                      }});
}

bool TemplateTraits::reads_variable(std::string_view name) const {
  return variables_.contains(name);
}

bool TemplateTraits::reads_field(std::string_view name) const {
  return attributes_.contains(name) || literals_.contains(name);
}

bool TemplateTraits::spells(std::string_view text) const {
  const auto holds = [text](const std::string& from) {
    return from.find(text) != std::string::npos;
  };
  return std::ranges::any_of(printed_, holds) || std::ranges::any_of(literals_, holds);
}

bool TemplateTraits::names(std::string_view literal) const {
  return literals_.contains(literal);
}

}  // namespace troupe
