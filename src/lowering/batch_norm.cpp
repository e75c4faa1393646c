// Batch norm in its overloads. Channels are dimension 1; the statistics are over all others.
#include "lowering/normalization_rows.h"
#include "lowering/reduction_helpers.h"

namespace litz {
namespace {

using Lowered = std::optional<Unsupported>;

// A parameter of one number for each channel, at a position of the input.
Expr per_channel(OpCall& call, const TensorValue& value, std::span<const Index> p, DType dtype) {
  const Index channel[] = {p[1]};
  return cast(load_wide(call, value, channel), dtype);
}

// Where a position of the channels is read in what a reduction over the input's other dimensions
// has kept as size 1.
std::vector<Index> channel_position(OpCall& call, Index channel, size_t rank) {
  std::vector<Index> position(rank, call.indices().constant(0));
  position[1] = channel;
  return position;
}

std::vector<size_t> dims_but_channels(size_t rank) {
  std::vector<size_t> dims;
  for (size_t i = 0; i < rank; ++i) {
    if (i != 1) dims.push_back(i);
  }
  return dims;
}

// The positions of the results; -1 where the overload has none of the kind.
struct BatchNormResults {
  bool training;
  int running;  // the first of the two new running statistics
  int reserve;  // bytes for a library that Litz does not use
};

// The statistics of a batch, over all elements of a channel.
struct Statistics {
  TensorValue sum;
  TensorValue squares;  // of the deviations from the mean
  Expr count;

  Expr mean(OpCall& call, std::span<const Index> p) const {
    return call.load_broadcast(sum, p) / count;
  }
  Expr inverse_deviation(OpCall& call, std::span<const Index> p, double eps) const {
    return 1 / square_root(call.load_broadcast(squares, p) / count + eps);
  }
};

Statistics find_statistics(OpCall& call, const TensorValue& input) {
  const std::vector<size_t> dims = dims_but_channels(input.rank());
  Statistics statistics;
  statistics.count =
      index_as(call, count_elements(call, input.sizes, dims), computation_dtype(input.dtype));
  statistics.sum = call.reduce(ReductionKind::kSum, input.sizes, dims, true,
                               [&](std::span<const Index> p) { return load_wide(call, input, p); });
  statistics.squares =
      call.reduce(ReductionKind::kSum, input.sizes, dims, true, [&](std::span<const Index> p) {
        const Expr deviation = load_wide(call, input, p) - statistics.mean(call, p);
        return deviation * deviation;
      });
  return statistics;
}

// Eager computes x * alpha + beta with alpha = inverse deviation * weight, beta = bias - mean *
// alpha.
Expr find_alpha(OpCall& call, Expr inverse_deviation, std::span<const Index> p) {
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  if (!weight) return inverse_deviation;
  return inverse_deviation * per_channel(call, *weight, p, inverse_deviation.dtype());
}

Expr find_beta(OpCall& call, Expr mean, Expr alpha, std::span<const Index> p) {
  const std::optional<TensorValue> bias = call.optional_tensor("bias");
  if (!bias) return -(mean * alpha);
  return per_channel(call, *bias, p, alpha.dtype()) - mean * alpha;
}

Expr normalize(OpCall& call, Expr x, Expr mean, Expr inverse_deviation, std::span<const Index> p) {
  const Expr alpha = find_alpha(call, inverse_deviation, p);
  return x * alpha + find_beta(call, mean, alpha, p);
}

void lower_training(OpCall& call, const BatchNormResults& results) {
  const TensorValue input = call.tensor("input");
  const double eps = std::get<double>(call.argument("eps").v);
  const Statistics statistics = find_statistics(call, input);
  const auto at = [&](std::span<const Index> p) {
    return channel_position(call, p[0], input.rank());
  };
  // Eager normalizes with the statistics that it saves, which may be halves.
  const auto saved = [&](Expr value) {
    return cast(cast(value, call.result(1).dtype), value.dtype());
  };
  set_pointwise(call, 0, [&](std::span<const Index> p) {
    return normalize(call, load_wide(call, input, p), saved(statistics.mean(call, p)),
                     saved(statistics.inverse_deviation(call, p, eps)), p);
  });
  set_pointwise(call, 1, [&](std::span<const Index> p) { return statistics.mean(call, at(p)); });
  set_pointwise(call, 2, [&](std::span<const Index> p) {
    return statistics.inverse_deviation(call, at(p), eps);
  });
  if (results.running < 0) return;

  const double momentum = std::get<double>(call.argument("momentum").v);
  const auto update = [&](size_t output, std::string_view name, auto&& fresh) {
    const TensorValue running = call.tensor(name);
    set_pointwise(call, output, [&](std::span<const Index> p) {
      const Expr value = fresh(p);
      return value * momentum + cast(load_wide(call, running, p), value.dtype()) * (1 - momentum);
    });
  };
  const size_t first = static_cast<size_t>(results.running);
  update(first, "running_mean",
         [&](std::span<const Index> p) { return statistics.mean(call, at(p)); });
  update(first + 1, "running_var", [&](std::span<const Index> p) {
    return call.load(statistics.squares, at(p)) / (statistics.count - 1.0);
  });
}

// As eager does on the CPU; on CUDA it saves what it has normalized with.
bool saves_nothing(OpCall& call) {
  return call.result(1).sizes.size() == 1 && call.result(1).sizes[0].is_constant(0) &&
         call.result(2).sizes == call.result(1).sizes;
}

// Where the loop over channels is the innermost one, a CPU would compute what belongs to a channel
// for every element. On a GPU that is cheaper than one more kernel.
bool wants_tables(OpCall& call, const TensorValue& input) {
  const TensorMeta& result = call.result();
  return result.device == "cpu" && input.rank() >= 3 && result.strides[1].is_constant(1);
}

// The value for each channel, computed once; `value` takes a position of the input.
TensorValue table_of_channels(OpCall& call, const TensorValue& input, const OpCall::Body& value) {
  const Index channels[] = {input.sizes[1]};
  return call.pointwise(computation_dtype(input.dtype), channels, [&](std::span<const Index> p) {
    return value(channel_position(call, p[0], input.rank()));
  });
}

void lower_inference(OpCall& call, const BatchNormResults& results) {
  const TensorValue input = call.tensor("input");
  const TensorValue running_mean = call.tensor("running_mean");
  const TensorValue running_var = call.tensor("running_var");
  const double eps = std::get<double>(call.argument("eps").v);
  const auto inverse_deviation = [&](std::span<const Index> p) {
    return 1 / square_root(per_channel(call, running_var, p, computation_dtype(input.dtype)) + eps);
  };
  const auto mean = [&](std::span<const Index> p) {
    return per_channel(call, running_mean, p, computation_dtype(input.dtype));
  };
  if (wants_tables(call, input)) {
    const TensorValue alpha = table_of_channels(call, input, [&](std::span<const Index> p) {
      return find_alpha(call, inverse_deviation(p), p);
    });
    const TensorValue beta = table_of_channels(call, input, [&](std::span<const Index> p) {
      return find_beta(call, mean(p), call.load(alpha, p.subspan(1, 1)), p);
    });
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      const std::span<const Index> channel = p.subspan(1, 1);
      return load_wide(call, input, p) * call.load(alpha, channel) + call.load(beta, channel);
    });
  } else {
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      return normalize(call, load_wide(call, input, p), mean(p), inverse_deviation(p), p);
    });
  }
  if (saves_nothing(call)) {
    set_constant(call, 1, 0);
    set_constant(call, 2, 0);
  } else {
    set_rounded(call, 1, running_mean);
    set_pointwise(call, 2, [&](std::span<const Index> p) {
      return 1 / square_root(load_wide(call, running_var, p) + eps);
    });
  }
  if (results.running < 0) return;
  const size_t first = static_cast<size_t>(results.running);
  set_rounded(call, first, running_mean);
  set_rounded(call, first + 1, running_var);
}

Lowered lower_batch_norm(OpCall& call, const BatchNormResults& results) {
  const TensorValue& input = call.tensor("input");
  if (input.rank() < 2) return Unsupported{"the input has no channels"};
  if (!is_floating(input.dtype)) return Unsupported{"the input is not floating-point"};
  if (is_empty(call, input.sizes)) return Unsupported{"the input is empty"};
  if (!results.training) {
    lower_inference(call, results);
  } else {
    lower_training(call, results);
  }
  if (results.reserve >= 0) set_constant(call, static_cast<size_t>(results.reserve), 0);
  return std::nullopt;
}

Lowered lower_functional(OpCall& call) {
  return lower_batch_norm(call, {call.boolean("training"), 3, -1});
}

Lowered lower_no_training(OpCall& call) { return lower_batch_norm(call, {false, -1, -1}); }

Lowered lower_no_stats(OpCall& call) {
  if (!call.boolean("training")) return Unsupported{"inference without running statistics"};
  return lower_batch_norm(call, {true, -1, -1});
}

Lowered lower_with_update(OpCall& call) { return lower_batch_norm(call, {true, 4, 3}); }
Lowered lower_no_update(OpCall& call) { return lower_batch_norm(call, {false, -1, 3}); }

// In training this op writes its running statistics, although its schema does not say so.
Lowered lower_native_batch_norm(OpCall& call) {
  const bool training = call.boolean("training");
  const bool has_statistics = !call.is_none("running_mean") || !call.is_none("running_var");
  if (training && has_statistics) return Unsupported{"it updates running statistics in place"};
  if (!training && (call.is_none("running_mean") || call.is_none("running_var")))
    return Unsupported{"inference without running statistics"};
  return lower_batch_norm(call, {training, -1, -1});
}

// ---- backward ----

Lowered lower_backward(OpCall& call) {
  const TensorValue grad = call.tensor("grad_out");
  const TensorValue input = call.tensor("input");
  const bool training = call.boolean("train");
  const double eps = std::get<double>(call.argument("eps").v);
  const std::optional<TensorValue> weight = call.optional_tensor("weight");
  const std::optional<TensorValue> mean =
      call.optional_tensor(training ? "save_mean" : "running_mean");
  const std::optional<TensorValue> deviation =
      call.optional_tensor(training ? "save_invstd" : "running_var");
  if (!mean || !deviation) return Unsupported{"the statistics are missing"};
  if (input.rank() < 2) return Unsupported{"the input has no channels"};
  if (is_empty(call, input.sizes)) return Unsupported{"the input is empty"};

  const DType dtype = computation_dtype(input.dtype);
  const std::vector<size_t> dims = dims_but_channels(input.rank());
  const auto wanted = [&](size_t i) { return call.node().outputs[i].is_tensor(); };
  const auto scale = [&](std::span<const Index> p) {
    const Expr saved = per_channel(call, *deviation, p, dtype);
    return training ? saved : 1 / square_root(saved + eps);
  };
  const auto upstream = [&](std::span<const Index> p) {
    return cast(load_wide(call, grad, p), dtype);
  };
  const auto normal = [&](std::span<const Index> p) {
    return (load_wide(call, input, p) - per_channel(call, *mean, p, dtype)) * scale(p);
  };
  const TensorValue sum = call.reduce(ReductionKind::kSum, input.sizes, dims, true, upstream);
  const TensorValue dot =
      call.reduce(ReductionKind::kSum, input.sizes, dims, true,
                  [&](std::span<const Index> p) { return upstream(p) * normal(p); });
  if (wanted(0)) {
    const Expr count = index_as(call, count_elements(call, input.sizes, dims), dtype);
    set_pointwise(call, 0, [&](std::span<const Index> p) {
      Expr centered = upstream(p);
      if (training) {
        centered = centered -
                   (call.load_broadcast(sum, p) + normal(p) * call.load_broadcast(dot, p)) / count;
      }
      const Expr scaled = centered * scale(p);
      return weight ? scaled * per_channel(call, *weight, p, dtype) : scaled;
    });
  }
  if (wanted(1)) set_rounded(call, 1, without_dims(call, dot, dims));
  if (wanted(2)) set_rounded(call, 2, without_dims(call, sum, dims));
  return std::nullopt;
}

constexpr LoweringRow kRows[] = {
    {"aten::_native_batch_norm_legit_functional", lower_functional},
    {"aten::_native_batch_norm_legit_no_training", lower_no_training},
    {"aten::_native_batch_norm_legit.no_stats", lower_no_stats},
    {"aten::_batch_norm_with_update_functional", lower_with_update},
    {"aten::_batch_norm_no_update", lower_no_update},
    {"aten::native_batch_norm", lower_native_batch_norm},
    {"aten::native_batch_norm_backward", lower_backward},
};

}  // namespace

std::span<const LoweringRow> batch_norm_rows() { return kRows; }

}  // namespace litz
