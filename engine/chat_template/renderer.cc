#include "engine/chat_template/renderer.h"

#include "base/assert.h"
#include "engine/chat_template/errors.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"

namespace troupe::chat_template {

using Kind = TemplateValue::Kind;

Renderer::Renderer(const ChatTemplateLimits& limits, const TemplateValue& context,
                   int64_t unix_seconds)
    : budget_(limits), context_(context), unix_seconds_(unix_seconds) {
  TROUPE_ASSERT(context.is(Kind::kDict), context.type_name());
}

Result<TemplateText> Renderer::run(const Program& program) {
  TROUPE_ASSERT(scope_ == nullptr && output_.empty(), output_.size());
  TROUPE_RETURN_IF_ERROR(budget_.value_depth(context_.depth()));
  ScopeGuard outermost(*this, nullptr);
  TROUPE_ASSIGN_OR_RETURN(const Flow flow, execute_body(program.body));
  TROUPE_ASSERT(flow == Flow::kNext, static_cast<int>(flow));
  return std::move(output_);
}

Status Renderer::located(int line, const Status& status) {
  return {status.code(), at_line(line, status.message())};
}

Renderer::ScopeGuard::ScopeGuard(Renderer& renderer, Scope* parent)
    : renderer_(renderer), outside_(renderer.scope_), scope_(std::make_unique<Scope>()) {
  scope_->parent = parent;
  renderer_.scope_ = scope_.get();
}

Renderer::ScopeGuard::~ScopeGuard() {
  renderer_.scope_ = outside_;
  if (scope_->is_captured) renderer_.captured_scopes_.push_back(std::move(scope_));
}

Status Renderer::Level::check(int line) const {
  Status status = renderer_.budget_.eval_depth(renderer_.depth_);
  if (status.ok()) status = renderer_.budget_.steps(1);
  return status.ok() ? status : located(line, status);
}

Status Renderer::charge_object(int line) {
  constexpr uint64_t kObjectBytes = 256;
  const Status status = budget_.work(kObjectBytes);
  return status.ok() ? status : located(line, status);
}

Macro* Renderer::make_macro(const MacroDefinition& definition) {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) scope->is_captured = true;
  return &macros_.emplace_back(Macro{&definition, scope_});
}

Result<Renderer::Flow> Renderer::execute_body(const Body& body) {
  for (const auto& statement : body) {
    TROUPE_ASSIGN_OR_RETURN(const Flow flow, execute(*statement));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::execute(const Statement& statement) {
  const Level level(*this);
  TROUPE_RETURN_IF_ERROR(level.check(statement.line));
  return std::visit([&](const auto& node) { return run_statement(node, statement.line); },
                    statement.node);
}

Status Renderer::print(const TemplateValue& value, int line) {
  Status status;
  if (value.is(Kind::kText)) {
    const TemplateText& text = value.as_text();
    status = budget_.append(*sink_, text);
    if (status.ok()) sink_->append(text);
  } else {
    const Result<TemplateText> text = to_text(budget_, value);
    status = text.ok() ? budget_.append(*sink_, text.value()) : text.status();
    if (status.ok()) sink_->append(text.value());
  }
  return status.ok() ? status : located(line, status);
}

Result<Renderer::Flow> Renderer::run_statement(const TextOutput& node, int line) {
  TROUPE_RETURN_IF_ERROR(print(node.text, line));
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const Print& node, int line) {
  for (const ExprPtr& expr : node.values) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*expr));
    TROUPE_RETURN_IF_ERROR(print(value, line));
  }
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const If& node, int) {
  for (const auto& [test, body] : node.branches) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*test));
    if (value.truthy()) return execute_body(body);
  }
  return execute_body(node.otherwise);
}

Result<bool> Renderer::passes_condition(const For& node, int line, const TemplateValue& item) {
  if (!node.condition) return true;
  ScopeGuard guard(*this, scope_);
  TROUPE_RETURN_IF_ERROR(assign(node.target, item, line));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*node.condition));
  return value.truthy();
}

Result<Renderer::Flow> Renderer::run_iteration(const For& node, int line, LoopState& state) {
  ScopeGuard guard(*this, scope_);
  if (node.mentions_loop) guard.scope().assign("loop", TemplateValue::of(&state));
  TROUPE_RETURN_IF_ERROR(assign(node.target, state.items[state.index], line));
  return execute_body(node.body);
}

Result<Renderer::Flow> Renderer::run_statement(const For& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue iterable, evaluate(*node.iterable));
  Result<TemplateValue::List> elements = elements_of(budget_, iterable);
  if (!elements.ok()) return located(line, elements.status());

  // `loop` knows the length, so the condition is asked first; without it, the condition sees what
  // earlier passes have done, as jinja2's generators do.
  LoopState local;
  LoopState* state = &local;
  if (node.mentions_loop) {
    TROUPE_RETURN_IF_ERROR(charge_object(line));
    state = &loops_.emplace_back();
    for (TemplateValue& item : elements.value()) {
      TROUPE_ASSIGN_OR_RETURN(const bool passes, passes_condition(node, line, item));
      if (passes) state->items.push_back(std::move(item));
    }
  } else {
    state->items = std::move(elements).value();
  }
  bool has_run = false;
  for (; state->index < state->items.size(); ++state->index) {
    if (!node.mentions_loop) {
      TROUPE_ASSIGN_OR_RETURN(const bool passes,
                              passes_condition(node, line, state->items[state->index]));
      if (!passes) continue;
    }
    has_run = true;
    TROUPE_ASSIGN_OR_RETURN(const Flow flow, run_iteration(node, line, *state));
    if (flow == Flow::kBreak) break;
  }
  // A loop object that outlives its loop shows the last pass.
  if (state->index == state->items.size() && state->index > 0) --state->index;
  if (!has_run) return execute_body(node.otherwise);
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const Set& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*node.value));
  TROUPE_RETURN_IF_ERROR(assign(node.target, std::move(value), line));
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::capture(const Body& body, TemplateText& captured) {
  ScopeGuard guard(*this, scope_);
  TemplateText* const outside = std::exchange(sink_, &captured);
  Result<Flow> flow = execute_body(body);
  sink_ = outside;
  return flow;
}

Result<Renderer::Flow> Renderer::run_statement(const SetBlock& node, int line) {
  TemplateText text;
  TROUPE_ASSIGN_OR_RETURN(const Flow flow, capture(node.body, text));
  if (flow != Flow::kNext) return flow;
  block_text_ = TemplateValue::text(std::move(text));
  TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*node.filters));
  TROUPE_RETURN_IF_ERROR(assign(node.target, std::move(value), line));
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const FilterBlock& node, int line) {
  TemplateText text;
  TROUPE_ASSIGN_OR_RETURN(const Flow flow, capture(node.body, text));
  if (flow != Flow::kNext) return flow;
  block_text_ = TemplateValue::text(std::move(text));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*node.filters));
  TROUPE_RETURN_IF_ERROR(print(value, line));
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const MacroDefinition& node, int line) {
  TROUPE_RETURN_IF_ERROR(charge_object(line));
  scope_->assign(node.name, TemplateValue::of(make_macro(node)));
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const CallBlock& node, int line) {
  const auto& call = std::get<FunctionCall>(node.call->node);
  const TemplateValue callee = look_up(call.name);
  if (!callee.is(Kind::kMacro)) return render_error(line, quoted(call.name) + " is no macro");
  TROUPE_RETURN_IF_ERROR(charge_object(line));
  TROUPE_ASSIGN_OR_RETURN(CallArguments arguments, evaluate_arguments(call.arguments, line));
  arguments.named.emplace_back("caller", TemplateValue::of(make_macro(node.caller)));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue value,
                          call_macro(callee.as_macro(), std::move(arguments), line));
  TROUPE_RETURN_IF_ERROR(print(value, line));
  return Flow::kNext;
}

Result<Renderer::Flow> Renderer::run_statement(const With& node, int line) {
  std::vector<TemplateValue> values;
  for (const auto& [target, expr] : node.variables) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*expr));
    values.push_back(std::move(value));
  }
  ScopeGuard guard(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(assign(node.variables[i].first, std::move(values[i]), line));
  }
  return execute_body(node.body);
}

Result<Renderer::Flow> Renderer::run_statement(const Group& node, int) {
  return execute_body(node.body);
}

Result<Renderer::Flow> Renderer::run_statement(const Break&, int) {
  return Flow::kBreak;
}

Result<Renderer::Flow> Renderer::run_statement(const Continue&, int) {
  return Flow::kContinue;
}

Status Renderer::assign(const Target& target, TemplateValue value, int line) {
  if (!target.elements.empty()) {
    const Result<TemplateValue::List> parts = elements_of(budget_, value);
    if (!parts.ok()) return located(line, parts.status());
    if (parts.value().size() != target.elements.size()) {
      return render_error(line, "cannot unpack " + std::to_string(parts.value().size()) +
                                    " values into " + std::to_string(target.elements.size()));
    }
    for (size_t i = 0; i < target.elements.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(assign(target.elements[i], parts.value()[i], line));
    }
    return ok_status();
  }
  if (target.attribute.empty()) {
    scope_->assign(target.name, std::move(value));
    return ok_status();
  }
  const TemplateValue object = look_up(target.name);
  if (!object.is(Kind::kNamespace)) {
    return render_error(line, quoted(target.name) + " is no namespace, so " +
                                  quoted(target.attribute) + " cannot be set on it");
  }
  object.as_namespace().assign(target.attribute, std::move(value));
  return ok_status();
}

}  // namespace troupe::chat_template
