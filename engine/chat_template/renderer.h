#pragma once
// Walks a syntax tree and writes what it prints.

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/chat_template/ast.h"
#include "engine/chat_template/budget.h"
#include "engine/chat_template/runtime.h"
#include "engine/chat_template/text.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe::chat_template {

// For one render. Everything that it is given outlives it.
class Renderer {
 public:
  // `context` is a dict.
  Renderer(const ChatTemplateLimits& limits, const TemplateValue& context, int64_t unix_seconds);

  // Once.
  Result<TemplateText> run(const Program& program);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  using Value = Result<TemplateValue>;

  // ---- statements (renderer.cc)

  Result<Flow> execute_body(const Body& body);
  Result<Flow> execute(const Statement& statement);
  Result<Flow> run_statement(const TextOutput& node, int line);
  Result<Flow> run_statement(const Print& node, int line);
  Result<Flow> run_statement(const If& node, int line);
  Result<Flow> run_statement(const For& node, int line);
  Result<Flow> run_statement(const Set& node, int line);
  Result<Flow> run_statement(const SetBlock& node, int line);
  Result<Flow> run_statement(const FilterBlock& node, int line);
  Result<Flow> run_statement(const MacroDefinition& node, int line);
  Result<Flow> run_statement(const CallBlock& node, int line);
  Result<Flow> run_statement(const With& node, int line);
  Result<Flow> run_statement(const Group& node, int line);
  Result<Flow> run_statement(const Break& node, int line);
  Result<Flow> run_statement(const Continue& node, int line);

  // One pass of a loop over `state`, in a scope of its own.
  Result<Flow> run_iteration(const For& node, int line, LoopState& state);
  Result<bool> passes_condition(const For& node, int line, const TemplateValue& item);
  // Runs the body in a scope of its own with its output going to `captured`.
  Result<Flow> capture(const Body& body, TemplateText& captured);
  Status assign(const Target& target, TemplateValue value, int line);
  Status print(const TemplateValue& value, int line);
  // `message` at this line, for errors of operators and built-ins, which know no lines.
  static Status located(int line, const Status& status);

  // ---- expressions (evaluator.cc)

  Value evaluate(const Expr& expr);
  // Undefined for a null pointer: a part that was left out.
  Value evaluate_optional(const ExprPtr& expr);
  Value value_of(const Literal& node, int line);
  Value value_of(const Variable& node, int line);
  Value value_of(const BlockText& node, int line);
  Value value_of(const Attribute& node, int line);
  Value value_of(const Subscript& node, int line);
  Value value_of(const Slice& node, int line);
  Value value_of(const FunctionCall& node, int line);
  Value value_of(const MethodCall& node, int line);
  Value value_of(const ValueCall& node, int line);
  Value value_of(const ChangeCall& node, int line);
  Value value_of(const FilterCall& node, int line);
  Value value_of(const TestCall& node, int line);
  Value value_of(const Unary& node, int line);
  Value value_of(const Binary& node, int line);
  Value value_of(const Logical& node, int line);
  Value value_of(const Comparison& node, int line);
  Value value_of(const Concatenation& node, int line);
  Value value_of(const Conditional& node, int line);
  Value value_of(const ListDisplay& node, int line);
  Value value_of(const DictDisplay& node, int line);

  // The object of an attribute, subscript or method, which must be defined.
  Value evaluate_object(const Expr& expr);
  Result<CallArguments> evaluate_arguments(const Arguments& arguments, int line);
  // A macro or function, by the name under which the template calls it.
  Value call(const TemplateValue& callee, const std::string& name, const Arguments& arguments,
             int line);
  // Where the value of a ChangeCall is kept.
  Result<TemplateValue*> find_place(const ChangeCall& node, int line);
  TemplateValue look_up(const std::string& name) const;
  Value call_function(FunctionId function, const CallArguments& arguments, int line);
  Value make_namespace(const CallArguments& arguments, int line);
  Value call_macro(const Macro& macro, CallArguments arguments, int line);
  // Distributes the arguments of a macro to the variables of its scope.
  Status bind_parameters(const MacroDefinition& macro, CallArguments arguments, Scope& scope,
                         int line);
  Value call_loop_method(LoopState& loop, const std::string& name, CallArguments arguments,
                         int line);

  // ---- what lives as long as the render

  // A scope that ends with the block that opens it, unless a macro refers to it.
  class ScopeGuard {
   public:
    ScopeGuard(Renderer& renderer, Scope* parent);
    ~ScopeGuard();
    ScopeGuard(const ScopeGuard&) = delete;
    ScopeGuard& operator=(const ScopeGuard&) = delete;
    [[nodiscard]] Scope& scope() { return *scope_; }

   private:
    Renderer& renderer_;
    Scope* outside_;
    std::unique_ptr<Scope> scope_;
  };
  // The macro, with the scopes that it may read kept until the end of the render.
  Macro* make_macro(const MacroDefinition& definition);
  // Counts one level of nested evaluation while it lives, and a step.
  class Level {
   public:
    explicit Level(Renderer& renderer) : renderer_(renderer) { ++renderer_.depth_; }
    ~Level() { --renderer_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    [[nodiscard]] Status check(int line) const;

   private:
    Renderer& renderer_;
  };
  // Charges for an object that stays until the end of the render.
  Status charge_object(int line);

  Budget budget_;
  const TemplateValue& context_;
  int64_t unix_seconds_;
  TemplateText output_;
  TemplateText* sink_ = &output_;  // where text goes now
  Scope* scope_ = nullptr;         // the innermost
  TemplateValue block_text_;       // of the {% filter %} or {% set %} block that just ended
  uint32_t depth_ = 0;
  std::deque<Namespace> namespaces_;
  std::deque<Macro> macros_;
  std::deque<LoopState> loops_;
  std::vector<std::unique_ptr<Scope>> captured_scopes_;
};

}  // namespace troupe::chat_template
