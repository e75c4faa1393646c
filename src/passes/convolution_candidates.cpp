#include "passes/convolution_candidates.h"

#include "graph/op_traits.h"
#include "graph/packed_linear.h"
#include "passes/convolutions_as_products.h"
#include "passes/turn_weights.h"

namespace litz {

std::vector<KernelCandidate> convolution_candidates(const Graph& graph,
                                                    const PassOptions& options) {
  std::vector<KernelCandidate> candidates;
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const NodeId id(i);
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::kCall || node.schema->full_name() != "aten::convolution" ||
        options.is_library_call(node))
      continue;
    const bool is_product = is_convolution_product(graph, id, options);
    if (!is_product && !can_turn_weight(graph, node, options)) continue;
    const TensorMeta& weight = graph.tensor(argument(node, "weight").get<Value>());
    KernelCandidate candidate;
    candidate.operations = 2;
    for (Index size : node.outputs[0].tensor.sizes)
      candidate.operations *= static_cast<double>(size.constant());
    for (size_t d = 1; d < weight.sizes.size(); ++d)
      candidate.operations *= static_cast<double>(weight.sizes[d].constant());
    if (candidate.operations < 2.0 * kFewestMultiplyAdds) continue;
    candidate.key = convolution_key(graph, node);
    candidate.node = node.name;
    candidate.is_kernel = is_product || wants_turned_weight(graph, node, options);
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

}  // namespace litz
