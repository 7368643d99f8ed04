// The expressions of the Renderer.
#include "base/assert.h"
#include "engine/chat_template/arguments.h"
#include "engine/chat_template/changes.h"
#include "engine/chat_template/errors.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/renderer.h"
#include "engine/chat_template/strftime.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

// How the template spells an expression, for error messages; the recursion is that of the tree.
std::string describe(const Expr& expr) {
  if (const auto* variable = std::get_if<Variable>(&expr.node)) return variable->name;
  if (const auto* attribute = std::get_if<Attribute>(&expr.node)) {
    return describe(*attribute->object) + "." + attribute->name;
  }
  if (const auto* subscript = std::get_if<Subscript>(&expr.node)) {
    const auto* index = std::get_if<Literal>(&subscript->index->node);
    std::string text = "…";
    if (index != nullptr && index->value.is(Kind::kText)) {
      text = quoted(index->value.as_text().bytes());
    } else if (index != nullptr && index->value.is(Kind::kInt)) {
      text = std::to_string(index->value.as_int());
    }
    return describe(*subscript->object) + "[" + text + "]";
  }
  return "a value";
}

Status undefined_error(const Expr& expr) {
  return render_error(expr.line, quoted(describe(expr)) + " is undefined");
}

}  // namespace

Result<TemplateValue> Renderer::evaluate(const Expr& expr) {
  const Level level(*this);
  TROUPE_RETURN_IF_ERROR(level.check(expr.line));
  return std::visit([&](const auto& node) { return value_of(node, expr.line); }, expr.node);
}

Result<TemplateValue> Renderer::evaluate_optional(const ExprPtr& expr) {
  if (!expr) return TemplateValue();
  return evaluate(*expr);
}

Result<TemplateValue> Renderer::evaluate_object(const Expr& expr) {
  TROUPE_ASSIGN_OR_RETURN(TemplateValue object, evaluate(expr));
  if (object.is(Kind::kUndefined)) return undefined_error(expr);
  return object;
}

TemplateValue Renderer::look_up(const std::string& name) const {
  if (const TemplateValue* value = scope_->find(name)) return *value;
  if (const TemplateValue* value = context_.find(name)) return *value;
  if (const std::optional<FunctionId> function = find_function(name)) {
    return TemplateValue::of(*function);
  }
  return {};
}

Result<TemplateValue> Renderer::value_of(const Literal& node, int) {
  return node.value;
}

Result<TemplateValue> Renderer::value_of(const Variable& node, int) {
  return look_up(node.name);
}

Result<TemplateValue> Renderer::value_of(const BlockText&, int) {
  return block_text_;
}

Result<TemplateValue> Renderer::value_of(const Attribute& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue object, evaluate_object(*node.object));
  Value value = get_attribute(budget_, object, node.name);
  return value.ok() ? value : located(line, value.status());
}

Result<TemplateValue> Renderer::value_of(const Subscript& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue object, evaluate_object(*node.object));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue index, evaluate(*node.index));
  Value value = get_item(budget_, object, index);
  return value.ok() ? value : located(line, value.status());
}

Result<TemplateValue> Renderer::value_of(const Slice& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue object, evaluate_object(*node.object));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue start, evaluate_optional(node.start));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue stop, evaluate_optional(node.stop));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue step, evaluate_optional(node.step));
  Value value = get_slice(budget_, object, start, stop, step);
  return value.ok() ? value : located(line, value.status());
}

Result<CallArguments> Renderer::evaluate_arguments(const Arguments& arguments, int line) {
  CallArguments result;
  for (const ExprPtr& expr : arguments.positional) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*expr));
    result.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : arguments.named) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*expr));
    result.named.emplace_back(name, std::move(value));
  }
  if (arguments.unpacked_list) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*arguments.unpacked_list));
    const Result<TemplateValue::List> list = elements_of(budget_, value);
    if (!list.ok()) return located(line, list.status());
    result.positional.insert(result.positional.end(), list->begin(), list->end());
  }
  if (arguments.unpacked_dict) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*arguments.unpacked_dict));
    if (!value.is(Kind::kDict)) return render_error(line, "'**' needs a dict");
    if (Status status = budget_.elements(value.as_dict().size()); !status.ok()) {
      return located(line, status);
    }
    for (const auto& [key, entry] : value.as_dict()) {
      if (!key.is(Kind::kText)) return render_error(line, "'**' needs a dict with str keys");
      result.named.emplace_back(key.as_text().bytes(), entry);
    }
  }
  return result;
}

Result<TemplateValue> Renderer::call(const TemplateValue& callee, const std::string& name,
                                     const Arguments& arguments, int line) {
  if (callee.is(Kind::kUndefined)) return render_error(line, quoted(name) + " is undefined");
  TROUPE_ASSIGN_OR_RETURN(CallArguments values, evaluate_arguments(arguments, line));
  if (callee.is(Kind::kMacro)) return call_macro(callee.as_macro(), std::move(values), line);
  if (!callee.is(Kind::kFunction) || callee.as_function() == FunctionId::kMethod) {
    return render_error(
        line, quoted(name) + " is a " + std::string(callee.type_name()) + " and cannot be called");
  }
  return call_function(callee.as_function(), values, line);
}

Result<TemplateValue> Renderer::value_of(const FunctionCall& node, int line) {
  return call(look_up(node.name), node.name, node.arguments, line);
}

Result<TemplateValue> Renderer::value_of(const ValueCall& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue callee, evaluate(*node.callee));
  return call(callee, describe(*node.callee), node.arguments, line);
}

Result<TemplateValue*> Renderer::find_place(const ChangeCall& node, int line) {
  TemplateValue* place = scope_->find_place(node.name);
  if (place == nullptr) {
    const bool is_given = context_.find(node.name) != nullptr;
    return render_error(
        line, quoted(node.name) + (is_given ? " comes with the conversation, which never changes; "
                                              "set a variable of another name to it first"
                                            : " is undefined"));
  }
  if (node.attribute.empty()) return place;
  if (!place->is(Kind::kNamespace)) {
    return render_error(line, quoted(node.name) +
                                  " is no namespace, so what is in it cannot be "
                                  "changed by " +
                                  quoted(node.method));
  }
  place = place->as_namespace().find_place(node.attribute);
  if (place != nullptr) return place;
  return render_error(line, quoted(node.name + "." + node.attribute) + " is undefined");
}

Result<TemplateValue> Renderer::value_of(const ChangeCall& node, int line) {
  // The arguments first: they may change what the name stands for.
  TROUPE_ASSIGN_OR_RETURN(const CallArguments arguments, evaluate_arguments(node.arguments, line));
  TROUPE_ASSIGN_OR_RETURN(TemplateValue* const place, find_place(node, line));
  Result<Change> change = apply_change(budget_, *place, node.method, arguments);
  if (!change.ok()) {
    return render_error(
        line, "the method " + quoted(node.method) + " " + std::string(change.status().message()));
  }
  *place = std::move(change->changed);
  return std::move(change->result);
}

Result<TemplateValue> Renderer::call_function(FunctionId function, const CallArguments& arguments,
                                              int line) {
  const auto at_this_line = [line](Value value) {
    return value.ok() ? value : Value(located(line, value.status()));
  };
  switch (function) {
    case FunctionId::kRange:
      return at_this_line(make_range(budget_, arguments));
    case FunctionId::kNamespace:
      return make_namespace(arguments, line);
    case FunctionId::kDict: {
      TemplateValue::Dict entries;
      if (!arguments.positional.empty()) {
        const TemplateValue& first = arguments.positional[0];
        if (arguments.positional.size() > 1 || !first.is(Kind::kDict)) {
          return render_error(line, "dict() takes one dict and named arguments");
        }
        entries = first.as_dict();
      }
      for (const auto& [name, value] : arguments.named) {
        entries.emplace_back(TemplateValue::markup(name), value);
      }
      return at_this_line(make_dict(budget_, std::move(entries)));
    }
    case FunctionId::kRaiseException: {
      const auto bound = bind<1>(arguments, {"message"}, 1);
      if (!bound.ok()) return located(line, bound.status());
      const Result<TemplateText> message = to_text(budget_, *bound.value()[0]);
      if (!message.ok()) return located(line, message.status());
      return invalid_argument(message.value().bytes());  // verbatim: it is meant for the client
    }
    case FunctionId::kStrftimeNow: {
      const auto bound = bind<1>(arguments, {"format"}, 1);
      if (!bound.ok()) return located(line, bound.status());
      const Result<const TemplateText*> format = text_argument(*bound.value()[0]);
      if (!format.ok()) return located(line, format.status());
      const Result<std::string> time = format_time(unix_seconds_, format.value()->bytes());
      if (!time.ok()) return located(line, time.status());
      return TemplateValue::data(time.value());
    }
    case FunctionId::kMethod:
      break;
  }
  return render_error(line, "a method cannot be called apart from its object");
}

Result<TemplateValue> Renderer::make_namespace(const CallArguments& arguments, int line) {
  TROUPE_RETURN_IF_ERROR(charge_object(line));
  Namespace made;
  for (const TemplateValue& value : arguments.positional) {
    if (!value.is(Kind::kDict)) return render_error(line, "namespace() takes dicts and names");
    for (const auto& [key, entry] : value.as_dict()) {
      if (key.is(Kind::kText)) made.assign(key.as_text().bytes(), entry);
    }
  }
  for (const auto& [name, value] : arguments.named) made.assign(name, value);
  return TemplateValue::of(&namespaces_.emplace_back(std::move(made)));
}

Result<TemplateValue> Renderer::call_macro(const Macro& macro, CallArguments arguments, int line) {
  TemplateText text;
  {
    ScopeGuard guard(*this, macro.scope);
    TROUPE_RETURN_IF_ERROR(
        bind_parameters(*macro.definition, std::move(arguments), guard.scope(), line));
    TROUPE_ASSIGN_OR_RETURN(const Flow flow, capture(macro.definition->body, text));
    TROUPE_ASSERT(flow == Flow::kNext, macro.definition->name);
  }
  return TemplateValue::text(std::move(text));
}

Status Renderer::bind_parameters(const MacroDefinition& macro, CallArguments arguments,
                                 Scope& scope, int line) {
  const auto fail = [&](const std::string& what) {
    return render_error(line, "the macro " + quoted(macro.name) + " " + what);
  };
  auto& named = arguments.named;
  const auto take_named = [&named](std::string_view name) -> std::optional<TemplateValue> {
    for (auto entry = named.begin(); entry != named.end(); ++entry) {
      if (entry->first != name) continue;
      TemplateValue value = std::move(entry->second);
      named.erase(entry);
      return value;
    }
    return std::nullopt;
  };
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    std::optional<TemplateValue> value = take_named(parameter.name);
    if (i < arguments.positional.size()) {
      if (value) return fail("got " + quoted(parameter.name) + " twice");
      value = arguments.positional[i];
    }
    if (!value) {
      TROUPE_ASSIGN_OR_RETURN(value, evaluate_optional(parameter.fallback));
    }
    scope.assign(parameter.name, *std::move(value));
  }
  if (macro.takes_caller) {
    scope.assign("caller", take_named("caller").value_or(TemplateValue()));
  }
  const size_t parameter_count = macro.parameters.size();
  if (!named.empty() && !macro.takes_kwargs) {
    return fail("takes no argument " + quoted(named.front().first));
  }
  if (arguments.positional.size() > parameter_count && !macro.takes_varargs) {
    return fail("takes at most " + std::to_string(parameter_count) + " arguments");
  }
  if (macro.takes_kwargs) {
    TemplateValue::Dict rest;
    for (auto& [name, value] : named) {
      rest.emplace_back(TemplateValue::markup(name), std::move(value));
    }
    const Value kwargs = make_dict(budget_, std::move(rest));
    if (!kwargs.ok()) return located(line, kwargs.status());
    scope.assign("kwargs", kwargs.value());
  }
  if (macro.takes_varargs) {
    TemplateValue::List rest;
    for (size_t i = parameter_count; i < arguments.positional.size(); ++i) {
      rest.push_back(std::move(arguments.positional[i]));
    }
    const Value varargs = make_tuple(budget_, std::move(rest));
    if (!varargs.ok()) return located(line, varargs.status());
    scope.assign("varargs", varargs.value());
  }
  return ok_status();
}

Result<TemplateValue> Renderer::value_of(const MethodCall& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue object, evaluate_object(*node.object));
  TROUPE_ASSIGN_OR_RETURN(CallArguments arguments, evaluate_arguments(node.arguments, line));
  if (!has_method(object, node.name)) {
    return render_error(line, quoted(describe(*node.object)) + " is a " +
                                  std::string(object.type_name()) + " without the method " +
                                  quoted(node.name));
  }
  if (object.is(Kind::kLoop)) {
    return call_loop_method(object.as_loop(), node.name, std::move(arguments), line);
  }
  Value value = call_method(budget_, object, node.name, arguments);
  if (value.ok()) return value;
  return render_error(line, "the method " + quoted(node.name) + " " + value.status().message());
}

Result<TemplateValue> Renderer::call_loop_method(LoopState& loop, const std::string& name,
                                                 CallArguments arguments, int line) {
  if (!arguments.named.empty()) {
    return render_error(line, "loop." + name + " takes no named arguments");
  }
  TemplateValue::List& values = arguments.positional;
  if (name == "cycle") {
    if (values.empty()) return render_error(line, "loop.cycle needs values to choose from");
    return values[loop.index % values.size()];
  }
  TROUPE_ASSERT(name == "changed", name);
  bool has_changed = !loop.has_changed_before || values.size() != loop.last_changed.size();
  for (size_t i = 0; !has_changed && i < values.size(); ++i) {
    const Result<bool> is_equal = equals(budget_, values[i], loop.last_changed[i]);
    if (!is_equal.ok()) return located(line, is_equal.status());
    has_changed = !is_equal.value();
  }
  loop.has_changed_before = true;
  loop.last_changed = std::move(values);
  return TemplateValue::boolean(has_changed);
}

Result<TemplateValue> Renderer::value_of(const FilterCall& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue input, evaluate(*node.input));
  TROUPE_ASSIGN_OR_RETURN(const CallArguments arguments, evaluate_arguments(node.arguments, line));
  Value value = node.filter(budget_, input, arguments);
  if (value.ok()) return value;
  return located(line, {value.status().code(),
                        "the filter " + quoted(node.name) + ": " + value.status().message()});
}

Result<TemplateValue> Renderer::value_of(const TestCall& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue input, evaluate(*node.input));
  TROUPE_ASSIGN_OR_RETURN(const CallArguments arguments, evaluate_arguments(node.arguments, line));
  const Result<bool> answer = node.test(budget_, input, arguments);
  if (answer.ok()) return TemplateValue::boolean(answer.value() != node.is_negated);
  return located(line, {answer.status().code(),
                        "the test " + quoted(node.name) + ": " + answer.status().message()});
}

Result<TemplateValue> Renderer::value_of(const Unary& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue operand, evaluate(*node.operand));
  if (node.op == UnaryOperator::kNot) return TemplateValue::boolean(!operand.truthy());
  if (operand.is(Kind::kUndefined)) return undefined_error(*node.operand);
  Value value = apply_sign(node.op, operand);
  return value.ok() ? value : located(line, value.status());
}

Result<TemplateValue> Renderer::value_of(const Binary& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue left, evaluate(*node.left));
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue right, evaluate(*node.right));
  if (left.is(Kind::kUndefined)) return undefined_error(*node.left);
  if (right.is(Kind::kUndefined)) return undefined_error(*node.right);
  Value value = apply_binary(budget_, node.op, left, right);
  return value.ok() ? value : located(line, value.status());
}

Result<TemplateValue> Renderer::value_of(const Logical& node, int) {
  TROUPE_ASSIGN_OR_RETURN(TemplateValue left, evaluate(*node.left));
  const bool is_decided = left.truthy() == (node.op == LogicalOperator::kOr);
  if (is_decided) return left;
  return evaluate(*node.right);
}

Result<TemplateValue> Renderer::value_of(const Comparison& node, int line) {
  TROUPE_ASSIGN_OR_RETURN(TemplateValue left, evaluate(*node.first));
  for (const auto& [op, operand] : node.rest) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue right, evaluate(*operand));
    const Result<bool> holds = apply_compare(budget_, op, left, right);
    if (!holds.ok()) return located(line, holds.status());
    if (!holds.value()) return TemplateValue::boolean(false);
    left = std::move(right);
  }
  return TemplateValue::boolean(true);
}

Result<TemplateValue> Renderer::value_of(const Concatenation& node, int line) {
  TemplateText result;
  for (const ExprPtr& part : node.parts) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue value, evaluate(*part));
    const Result<TemplateText> text = to_text(budget_, value);
    if (!text.ok()) return located(line, text.status());
    if (Status status = budget_.append(result, text.value()); !status.ok()) {
      return located(line, status);
    }
    result.append(text.value());
  }
  return TemplateValue::text(std::move(result));
}

Result<TemplateValue> Renderer::value_of(const Conditional& node, int) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateValue test, evaluate(*node.test));
  return test.truthy() ? evaluate(*node.then) : evaluate_optional(node.otherwise);
}

Result<TemplateValue> Renderer::value_of(const ListDisplay& node, int line) {
  TemplateValue::List elements;
  elements.reserve(node.elements.size());
  for (const ExprPtr& expr : node.elements) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*expr));
    elements.push_back(std::move(value));
  }
  Value list = node.is_tuple ? make_tuple(budget_, std::move(elements))
                             : make_list(budget_, std::move(elements));
  return list.ok() ? list : located(line, list.status());
}

Result<TemplateValue> Renderer::value_of(const DictDisplay& node, int line) {
  TemplateValue::Dict entries;
  for (const auto& [key_expr, value_expr] : node.entries) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue key, evaluate(*key_expr));
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, evaluate(*value_expr));
    entries.emplace_back(std::move(key), std::move(value));
  }
  Value dict = make_dict(budget_, std::move(entries));
  return dict.ok() ? dict : located(line, dict.status());
}

}  // namespace troupe::chat_template
