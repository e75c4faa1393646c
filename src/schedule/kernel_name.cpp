#include "schedule/kernel_name.h"

#include <algorithm>

namespace litz {
namespace {

constexpr std::string_view kPrefix = "litz";

// "aten::_softmax" is "softmax".
std::string plain(std::string_view op) {
  const size_t space = op.rfind(':');
  if (space != std::string_view::npos) op.remove_prefix(space + 1);
  std::string text;
  for (const char c : op) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const char lower = is_upper ? static_cast<char>(c - 'A' + 'a') : c;
    const bool is_plain = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (is_plain) {
      text += lower;
    } else if (!text.empty() && text.back() != '_') {
      text += '_';
    }
  }
  while (!text.empty() && text.back() == '_') text.pop_back();
  return text;
}

void add_scalar_ops(const Operation& operation, std::vector<KernelOp>& ops) {
  bool loads = false;
  bool casts = false;
  const size_t before = ops.size();
  visit_postorder(expressions(operation), [&](Expr e) {
    loads = loads || e.op() == ExprOp::kLoad;
    casts = casts || e.op() == ExprOp::kCast;
    if (e.operands().empty() || e.op() == ExprOp::kCast || e.op() == ExprOp::kLoad) return;
    ops.push_back({std::string(to_string(e.op())), true});
  });
  if (ops.size() == before && std::holds_alternative<Pointwise>(operation.v))
    ops.push_back({casts ? "cast" : loads ? "copy" : "fill", true});
}

struct NamedOp {
  std::string name;
  bool is_pointwise;
  bool is_chosen = false;
};

std::vector<NamedOp> without_repeats(std::span<const KernelOp> ops) {
  std::vector<NamedOp> unique;
  for (const KernelOp& op : ops) {
    std::string name = plain(op.name);
    if (name.empty()) continue;
    const auto known = std::find_if(unique.begin(), unique.end(),
                                    [&](const NamedOp& other) { return other.name == name; });
    if (known == unique.end()) {
      unique.push_back({std::move(name), op.is_pointwise});
    } else {
      known->is_pointwise = known->is_pointwise && op.is_pointwise;
    }
  }
  return unique;
}

}  // namespace

std::vector<KernelOp> kernel_ops(const Operation& operation) {
  if (std::holds_alternative<Attention>(operation.v)) return {{"attention", false}};
  if (!operation.op.empty())
    return {{operation.op, std::holds_alternative<Pointwise>(operation.v)}};
  std::vector<KernelOp> ops;
  if (const auto* reduction = std::get_if<Reduction>(&operation.v)) {
    if (reduction->is_product) return {{"product", false}};
    add_scalar_ops(operation, ops);
    ops.push_back({std::string(to_string(reduction->kind)), false});
  } else if (const auto* scan = std::get_if<Scan>(&operation.v)) {
    add_scalar_ops(operation, ops);
    ops.push_back({"cum" + std::string(to_string(scan->kind)), false});
  } else {
    add_scalar_ops(operation, ops);
    if (std::holds_alternative<Scatter>(operation.v)) ops.push_back({"scatter", false});
  }
  return ops;
}

std::string kernel_name(std::span<const KernelOp> ops, size_t number) {
  const std::string end = "_k" + std::to_string(number);
  const size_t most = kKernelNameLength - kPrefix.size() - end.size();
  std::vector<NamedOp> named = without_repeats(ops);
  size_t length = 0;
  for (const bool is_pointwise : {false, true}) {
    for (NamedOp& op : named) {
      if (op.is_pointwise != is_pointwise) continue;
      if (length == 0 && op.name.size() >= most) op.name.resize(most - 1);
      if (length + 1 + op.name.size() > most) break;
      length += 1 + op.name.size();
      op.is_chosen = true;
    }
  }
  std::string name(kPrefix);
  for (const NamedOp& op : named) {
    if (op.is_chosen) name += "_" + op.name;
  }
  return name + end;
}

}  // namespace litz
