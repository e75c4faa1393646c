#include "passes/pipeline.h"

#include "passes/choose_channels_last.h"
#include "passes/convolutions_as_products.h"
#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_nodes.h"
#include "passes/expand_foreach.h"
#include "passes/fold_batch_norms.h"
#include "passes/pack_weights.h"
#include "passes/recognize_attention.h"
#include "passes/remove_noops.h"
#include "passes/turn_weights.h"

namespace litz {
namespace {

template <Graph (*pass)(const Graph&)>
Graph without_options(const Graph& graph, const PassOptions&) {
  return pass(graph);
}

constexpr GraphPass kPasses[] = {
    // First: the others know calls on one tensor.
    {"expand_foreach", "Calls ops on lists of tensors for each tensor.",
     without_options<expand_foreach>},
    // Next, so that equal calls on a tensor and on a copy of it become the same call.
    {"remove_noops", "Uses the argument instead of a view or copy that is the same tensor.",
     without_options<remove_noops>},
    // Then, so that fewer steps lie in between; layers share what it says about their mask.
    {"recognize_attention", "Uses the library's op for attention that is spelt out.",
     recognize_attention},
    {"eliminate_common_subexpressions", "Uses the first of several equal calls.",
     without_options<eliminate_common_subexpressions>},
    {"fold_batch_norms", "Scales frozen weights instead of the results of their layers.",
     without_options<fold_batch_norms>},
    // After remove_noops, which goes by eager's strides.
    {"choose_channels_last", "Lays out images channels-last where convolutions are faster so.",
     choose_channels_last},
    // After choose_channels_last, which knows convolutions alone.
    {"convolutions_as_products", "Multiplies matrices where windows do not overlap.",
     convolutions_as_products},
    {"turn_weights", "Lays out weights of convolutions as kernels read them.", turn_weights},
    // After these three, which decide for which convolutions.
    {"pack_weights", "Lays out frozen weights as the library computes with them.", pack_weights},
    // Last: the passes before may leave nodes without users.
    {"eliminate_dead_nodes", "Removes calls that nobody uses and that cannot fail.",
     without_options<eliminate_dead_nodes>},
};

}  // namespace

std::span<const GraphPass> graph_passes() { return kPasses; }

const GraphPass* find_graph_pass(std::string_view name) {
  for (const GraphPass& pass : kPasses) {
    if (pass.name == name) return &pass;
  }
  return nullptr;
}

}  // namespace litz
