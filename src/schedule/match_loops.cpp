#include "schedule/match_loops.h"

#include <algorithm>
#include <numeric>

namespace litz {
namespace {

// Dimensions and variables that depend on each other.
struct Component {
  std::vector<size_t> dims;
  std::vector<size_t> variables;
};

size_t find_root(std::vector<size_t>& parent, size_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

std::vector<Component> connect(std::span<const Index> variables, std::span<const Index> position) {
  const size_t dims = position.size();
  std::vector<size_t> parent(dims + variables.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  for (size_t d = 0; d < dims; ++d) {
    for (size_t v = 0; v < variables.size(); ++v) {
      if (variables[v].is_symbol() && position[d].depends_on(variables[v])) {
        parent[find_root(parent, dims + v)] = find_root(parent, d);
      }
    }
  }
  std::vector<Component> components;
  std::vector<size_t> slot(parent.size(), SIZE_MAX);
  for (size_t i = 0; i < parent.size(); ++i) {
    const size_t root = find_root(parent, i);
    if (slot[root] == SIZE_MAX) {
      slot[root] = components.size();
      components.emplace_back();
    }
    if (i < dims) {
      components[slot[root]].dims.push_back(i);
    } else {
      components[slot[root]].variables.push_back(i - dims);
    }
  }
  return components;
}

std::vector<Index> pick(std::span<const Index> from, std::span<const size_t> which) {
  std::vector<Index> out;
  out.reserve(which.size());
  for (size_t i : which) out.push_back(from[i]);
  return out;
}

}  // namespace

Substitution as_substitution(const LoopMapping& mapping) {
  Substitution substitution;
  for (const auto& [variable, value] : mapping) substitution.set(variable, value);
  return substitution;
}

std::optional<LoopMatch> match_loops(IndexContext& context, std::span<const Index> variables,
                                     std::span<const Index> sizes, std::span<const Index> position,
                                     std::span<const Index> target) {
  LoopMatch match;
  for (const Component& component : connect(variables, position)) {
    if (component.dims.empty()) {
      const Index variable = variables[component.variables[0]];
      if (variable.is_symbol()) match.unmatched.push_back(variable);
      continue;
    }
    if (component.variables.empty()) {
      // A constant coordinate reaches every element only of a dimension of size 1.
      const size_t dim = component.dims[0];
      if (!sizes[dim].is_constant(1)) return std::nullopt;
      continue;
    }
    std::vector<Index> extents;
    for (size_t v : component.variables) extents.push_back(variables[v].extent());
    if (component.dims.size() == 1 && component.variables.size() == 1) {
      const size_t dim = component.dims[0];
      const Index variable = variables[component.variables[0]];
      if (position[dim] != variable || sizes[dim] != extents[0]) return std::nullopt;
      match.mapping.emplace_back(variable, target[dim]);
      continue;
    }
    const std::vector<Index> part_sizes = pick(sizes, component.dims);
    if (product(context, part_sizes) != product(context, extents)) return std::nullopt;
    const std::vector<Index> strides = contiguous_strides(context, part_sizes);
    const std::vector<Index> part_variables = pick(variables, component.variables);
    const Index walked = dot(context, pick(position, component.dims), strides);
    if (walked != dot(context, part_variables, contiguous_strides(context, extents)))
      return std::nullopt;
    const std::vector<Index> values =
        delinearize(dot(context, pick(target, component.dims), strides), extents);
    for (size_t i = 0; i < values.size(); ++i)
      match.mapping.emplace_back(part_variables[i], values[i]);
  }
  return match;
}

}  // namespace litz
