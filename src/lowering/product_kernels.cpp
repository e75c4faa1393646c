// Which matrix products of half floats are kernels of the dialect's own.
//
// What reads a product is part of its kernel, so that neither writes nor reads the product. By
// itself cuBLAS is about as fast or faster. The model takes a kernel where what reads the product
// is a kernel of elements and few factors are summed up: then writing and reading the product is
// much of the time. On an H200 that is 1.1 to 1.3 times as fast with 768 factors, and cuBLAS alone
// is faster with 3072, or where what reads it computes much. It takes a kernel for few rows, too,
// where a factor is made of integers of 8 bits: those are what takes time to read, and the library
// would read them as half floats, written before. Of others a measurement may decide
// (driver/choose_kernels.h).
#include <algorithm>
#include <array>

#include "lowering/lowering_context.h"

namespace litz {
namespace {

constexpr int64_t kVector = 8;               // half floats of 16 bytes
constexpr int64_t kLeastExtent = 16;         // of a tile's columns and factors
constexpr int64_t kMostFactors = 1024;       // of a product that the model takes
constexpr int64_t kLeastElements = 1 << 20;  // that it has
constexpr size_t kMostReaders = 16;          // that a key names
constexpr int64_t kFewRows = 128;            // of a product with a factor of integers

bool is_whole(Index elements) {
  return elements.is_constant() && elements.constant() % kVector == 0;
}

// The rows, columns or matrices other than along dimension `along`, where neighbours are neighbours
// in memory, lie at multiples of 16 bytes, as tensor descriptors want them.
bool has_aligned_rows(const TensorValue& value, size_t along) {
  if (!value.strided || !value.strided->strides[along].is_constant(1) ||
      !is_whole(value.strided->offset))
    return false;
  for (size_t d = 0; d < value.rank(); ++d) {
    const Index stride = value.strided->strides[d];
    if (d == along || value.sizes[d].is_constant(1)) continue;
    if (!is_whole(stride) || stride.constant() < 0) return false;
    // Of a matrix that is one row over and over there is no descriptor.
    if (stride.is_constant(0) && d + 2 >= value.rank()) return false;
  }
  return true;
}

bool is_elementwise(const Node& node) {
  const std::string op = node.schema->full_name();
  const auto has = [&](std::span<const LoweringRow> rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const LoweringRow& row) { return row.op == op; });
  };
  return has(pointwise_lowerings()) || has(activation_lowerings());
}

// ... of a few instructions an element: a product's kernel has few threads to spare for it. With an
// error function there, products of 16384 x 768 and 768 x 3072 took 275 us on an H200 instead of
// 175.
bool is_cheap(const Node& node) {
  static constexpr std::array<std::string_view, 12> kCheap = {
      "aten::add",   "aten::sub", "aten::mul",     "aten::rsub",    "aten::relu", "aten::where",
      "aten::clamp", "aten::neg", "aten::maximum", "aten::minimum", "aten::abs",  "aten::_to_copy"};
  return std::find(kCheap.begin(), kCheap.end(), node.schema->name) != kCheap.end();
}

std::string numbers(std::span<const Index> values) {
  std::string text;
  for (Index value : values) text += (text.empty() ? "" : ", ") + to_string(value);
  return "[" + text + "]";
}

}  // namespace

std::vector<NodeId> LoweringContext::elementwise_readers(Value value) const {
  std::vector<NodeId> readers;
  for (std::optional<NodeId> next = only_user(value, is_elementwise);
       next && readers.size() < kMostReaders; next = only_user({*next, 0}, is_elementwise))
    readers.push_back(*next);
  return readers;
}

// What alone reads the value computes each of its own elements from one of it, and so on as far as
// there is only one reader, all cheaply.
bool LoweringContext::feeds_cheap_elementwise(Value value) const {
  const std::vector<NodeId> readers = elementwise_readers(value);
  if (readers.empty() || !std::all_of(readers.begin(), readers.end(),
                                      [&](NodeId id) { return is_cheap(graph_.node(id)); }))
    return false;
  if (graph_.node(readers[0]).outputs.size() != 1 || !graph_.meta({readers[0], 0}).is_tensor())
    return false;
  IndexContext& context = program_.indices();
  return product(context, graph_.tensor({readers[0], 0}).sizes) ==
         product(context, graph_.tensor(value).sizes);
}

// Inputs that the graph writes to begin anywhere in memory.
bool LoweringContext::is_written(BufferId buffer) const {
  const Buffer& b = program_.buffer(buffer);
  if (b.kind != BufferKind::kInput) return false;
  for (NodeId id : mutations_) {
    const Node& node = graph_.node(id);
    for (size_t a = 0; a < node.arguments.size(); ++a) {
      if (!node.schema->arguments[a].is_mutated) continue;
      bool writes = false;
      for_each_value(node.arguments[a], [&](Value value) {
        const auto* tensor = std::get_if<TensorValue>(&values_[value]);
        writes = writes || tensor == nullptr || tensor->buffer == buffer;
      });
      if (writes) return true;
    }
  }
  return false;
}

bool LoweringContext::can_be_kernel(const TensorValue& left, const TensorValue& right) const {
  const size_t rank = left.rank();
  if (rank != right.rank() || rank < 2) return false;
  for (const TensorValue* operand : {&left, &right}) {
    if (!std::all_of(operand->sizes.begin(), operand->sizes.end(),
                     [](Index size) { return size.is_constant() && size.constant() > 0; }))
      return false;
    if (!(has_aligned_rows(*operand, rank - 1) || has_aligned_rows(*operand, rank - 2)) ||
        is_written(operand->buffer))
      return false;
  }
  return left.sizes[rank - 2].constant() > 1 && left.sizes[rank - 1].constant() >= kLeastExtent &&
         right.sizes[rank - 1].constant() >= kLeastExtent;
}

// Views of a tensor that was converted from integers of 8 bits.
bool LoweringContext::is_of_bytes(Value value) const {
  while (true) {
    const Node& node = graph_.node(value.node);
    if (node.kind != NodeKind::kCall || node.arguments.empty()) return false;
    const std::string& name = node.schema->name;
    const bool converts = name == "aten::_to_copy" || name == "prims::convert_element_type";
    if (!converts && !is_view(*node.schema)) return false;
    const auto* source = std::get_if<Value>(&node.arguments[0].v);
    if (source == nullptr || !graph_.meta(*source).is_tensor()) return false;
    const DType dtype = graph_.tensor(*source).dtype;
    if (converts) return dtype == DType::kInt8 || dtype == DType::kUInt8;
    value = *source;
  }
}

bool LoweringContext::pays_as_kernel(Value value, const TensorValue& left,
                                     const TensorValue& right) const {
  const Node& node = graph_.node(value.node);
  const char* first = node.schema->find("mat1") >= 0 ? "mat1" : "self";
  for (const char* factor : {first, "mat2"}) {
    const int position = node.schema->find(factor);
    if (left.rank() == 2 && left.sizes[0].constant() <= kFewRows && position >= 0 &&
        is_of_bytes(std::get<Value>(node.arguments[static_cast<size_t>(position)].v)))
      return true;
  }
  if (left.rank() != 2 || !has_aligned_rows(left, 1)) return false;
  const int64_t factors = left.sizes[1].constant();
  const int64_t columns = right.sizes[1].constant();
  return factors <= kMostFactors && factors % kVector == 0 && columns % kVector == 0 &&
         left.sizes[0].constant() * columns >= kLeastElements && feeds_cheap_elementwise(value);
}

std::string LoweringContext::names_of_readers(NodeId id) const {
  std::string names;
  for (NodeId reader : elementwise_readers({id, 0}))
    names += ", " + graph_.node(reader).schema->full_name();
  return names;
}

KernelCandidate LoweringContext::describe_product(NodeId id, const TensorValue& left,
                                                  const TensorValue& right) const {
  const Node& node = graph_.node(id);
  KernelCandidate candidate;
  candidate.node = node.name;
  candidate.key = node.schema->name + " " + std::string(to_string(left.dtype)) +
                  numbers(left.sizes) + numbers(left.strided->strides) + " by " +
                  numbers(right.sizes) + numbers(right.strided->strides);
  candidate.key += names_of_readers(id);
  candidate.operations = 2.0 * static_cast<double>(right.sizes.back().constant());
  for (Index size : left.sizes) candidate.operations *= static_cast<double>(size.constant());
  return candidate;
}

bool LoweringContext::compute_product(NodeId id, bool by_model) {
  OpCall call(*this, id);
  if (options_.matrix_products == ProductKernels::kOff || !is_half(call.result().dtype))
    return false;
  const auto [left, right] = factors_of(call);
  if (!can_be_kernel(left, right)) return false;
  if (options_.matrix_products == ProductKernels::kAuto) {
    if (candidates_.empty() || candidates_.back().node != graph_.node(id).name)
      candidates_.push_back(describe_product(id, left, right));
    if (!choose(candidates_.back(), by_model && pays_as_kernel({id, 0}, left, right))) return false;
  }
  set_product(call, left, right, true);
  return true;
}

bool LoweringContext::choose(KernelCandidate& candidate, bool by_model) const {
  const auto chosen = options_.kernel_choices.find(candidate.key);
  candidate.is_kernel = chosen == options_.kernel_choices.end() ? by_model : chosen->second;
  return candidate.is_kernel;
}

}  // namespace litz
