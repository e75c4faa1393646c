#include "passes/layout_rules.h"

#include <gtest/gtest.h>

#include <string>

#include "graph/parse_graph.h"
#include "graph/print_graph.h"
#include "passes/channels_last.h"
#include "passes/choose_channels_last.h"

namespace litz {
namespace {

struct Shape {
  std::string device = "cuda:0";
  std::string dtype = "f32";
  int batch = 32;
  int in = 64;
  int out = 64;
  int size = 56;
  int groups = 1;
};

// A convolution of 3x3, a pointwise op and the same convolution.
Graph two_convolutions(const Shape& s) {
  const auto tensor = [&](std::initializer_list<int> sizes) {
    std::string text;
    for (int size : sizes) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return s.dtype + "[" + text + "] device(" + s.device + ")";
  };
  const std::string image = tensor({s.batch, s.out, s.size, s.size});
  const std::string rest =
      ", none, [1, 1], [1, 1], [1, 1], false, [0, 0], " + std::to_string(s.groups) + ")\n";
  return parse_graph("graph(%x: " + tensor({s.batch, s.in, s.size, s.size}) +
                     ", %w: " + tensor({s.out, s.in / s.groups, 3, 3}) +
                     ", %v: " + tensor({s.out, s.out / s.groups, 3, 3}) + ") {\n  %a: " + image +
                     " = aten::convolution(%x, %w" + rest + "  %b: " + image +
                     " = aten::relu(%a)\n  %c: " + image + " = aten::convolution(%b, %v" + rest +
                     "  return (%c)\n}\n");
}

bool is_changed(const Graph& graph) {
  return to_string(choose_channels_last(graph, PassOptions{})) != to_string(graph);
}

Convolution first_convolution(const Graph& graph) {
  for (uint32_t i = 0; i < graph.num_nodes(); ++i) {
    if (const auto found = find_convolution(graph, NodeId(i))) return *found;
  }
  ADD_FAILURE() << "no convolution";
  return {};
}

TEST(LayoutRules, CountsMultiplyAdds) {
  const Convolution found =
      first_convolution(two_convolutions({.batch = 2, .in = 8, .out = 16, .size = 10}));
  EXPECT_EQ(found.kind, ConvolutionKind::kDense);
  EXPECT_EQ(found.multiply_adds, 2. * 16 * 10 * 10 * 8 * 9);
}

TEST(LayoutRules, TellsKindsApart) {
  const auto kind = [](const Shape& shape) {
    return first_convolution(two_convolutions(shape)).kind;
  };
  EXPECT_EQ(kind({.in = 3}), ConvolutionKind::kFewChannels);
  EXPECT_EQ(kind({.groups = 64}), ConvolutionKind::kDepthwise);
  EXPECT_EQ(kind({.groups = 4}), ConvolutionKind::kGrouped);
}

TEST(LayoutRules, GradientsAreTwoProducts) {
  const Graph graph =
      parse_graph(R"(graph(%g: f32[2, 16, 5, 5], %x: f32[2, 8, 5, 5], %w: f32[16, 8, 1, 1]) {
  %d:0: f32[2, 8, 5, 5], %d:1: f32[16, 8, 1, 1], %d:2: none = aten::convolution_backward(%g, %x, %w, [0], [1, 1], [0, 0], [1, 1], false, [0, 0], 1, [true, true, false])
  return (%d, %d:1)
})");
  EXPECT_EQ(first_convolution(graph).multiply_adds, 2. * (2 * 16 * 25 * 8));
}

// The table as it is meant, for the devices that were measured.
TEST(LayoutRules, DecidesByDeviceAndKind) {
  EXPECT_TRUE(is_changed(two_convolutions({})));
  EXPECT_TRUE(is_changed(two_convolutions({.dtype = "bf16"})));
  EXPECT_FALSE(is_changed(two_convolutions({.groups = 4})));
  EXPECT_FALSE(is_changed(two_convolutions({.batch = 1, .size = 7})));
  EXPECT_FALSE(is_changed(two_convolutions({.dtype = "f64"})));
  EXPECT_TRUE(is_changed(two_convolutions({.device = "cpu"})));
  EXPECT_FALSE(is_changed(two_convolutions({.device = "cpu", .batch = 1, .size = 7})));
  EXPECT_FALSE(is_changed(two_convolutions({.device = "xpu:0"})));
}

TEST(LayoutRules, WeighsKinds) {
  const auto saved = [](const Shape& shape) {
    const Graph graph = two_convolutions(shape);
    return seconds_saved(graph, first_convolution(graph));
  };
  EXPECT_LT(saved({.groups = 64}), 0);
  EXPECT_LT(saved({.groups = 4}), 0);
  EXPECT_EQ(saved({.in = 3}), 0);
  EXPECT_GT(saved({.device = "cpu", .groups = 64}), 0);
  EXPECT_GT(saved({.device = "cpu", .groups = 4}), 0);
  EXPECT_LT(saved({.device = "cpu", .in = 3}), 0);
  EXPECT_FALSE(is_changed(two_convolutions({.groups = 64})));
}

// A graph that saves tensors for a backward graph is for training: on the CPU no gain is known, on
// a GPU there is less to gain.
TEST(LayoutRules, DecidesByUse) {
  const auto saved_in_training = [](const char* device) {
    Graph graph = two_convolutions({.device = device});
    graph.set_outputs({graph.outputs()[0], graph.node(NodeId(4)).arguments[0]});
    graph.set_free_layouts({1});
    return seconds_saved(graph, first_convolution(graph));
  };
  EXPECT_EQ(saved_in_training("cpu"), 0);
  EXPECT_GT(saved_in_training("cuda:0"), 0);
  const Graph inference = two_convolutions({});
  EXPECT_LT(saved_in_training("cuda:0"), seconds_saved(inference, first_convolution(inference)));
}

TEST(ChannelsLast, Strides) {
  IndexContext context;
  const auto constants = [&](std::initializer_list<int64_t> values) {
    std::vector<Index> list;
    for (int64_t value : values) list.push_back(context.constant(value));
    return list;
  };
  EXPECT_EQ(channels_last_strides(context, constants({2, 3, 4, 5})), constants({60, 1, 15, 3}));
  EXPECT_EQ(channels_last_strides(context, constants({2, 3, 4, 5, 6})),
            constants({360, 1, 90, 18, 3}));
  TensorMeta meta;
  meta.sizes = constants({2, 3, 1, 1});
  meta.strides = constants({3, 1, 1, 1});
  EXPECT_TRUE(is_channels_last(context, meta));
  EXPECT_TRUE(is_row_major(context, meta));
  meta.sizes = constants({2, 3, 4, 5});
  meta.strides = constants({60, 1, 15, 3});
  EXPECT_TRUE(is_channels_last(context, meta));
  EXPECT_FALSE(is_row_major(context, meta));
}

}  // namespace
}  // namespace litz
