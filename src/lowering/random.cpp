// Random numbers, computed where they are used. One library call of a graph draws a seed for each
// op (OpCall::draw_seed), and element number n of its result is a function of that seed and of n
// alone, so it may be computed anywhere, and again. Numbers count in the order of the result's
// memory.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "lowering/pointwise_helpers.h"

namespace litz {
namespace {

// The draws of one op for one of its results.
class Draws {
 public:
  Draws(OpCall& call, const TensorMeta& meta)
      : call_(call), meta_(meta), seed_(call.draw_seed(meta.device)) {}

  DType dtype() const { return meta_.dtype; }

  // 32 or 64 random bits. Streams of one op are independent.
  Expr bits32(std::span<const Index> position, int64_t stream = 0) const {
    return apply<ExprOp::kPhilox32>(seed_, number(position, stream));
  }
  Expr bits64(std::span<const Index> position, int64_t stream = 0) const {
    return apply<ExprOp::kPhilox64>(seed_, number(position, stream));
  }

  // In [0, 1), every multiple of 2^-digits alike, in float64 where it needs more than 24 digits.
  Expr uniform(std::span<const Index> position, int digits, int64_t stream = 0) const {
    const bool wide = digits > 24;
    const Expr bits = wide ? bits64(position, stream) : bits32(position, stream);
    return leading(bits, digits) * std::ldexp(1.0, -digits);
  }
  // With all the digits that the computation dtype of the result has.
  Expr precise_uniform(std::span<const Index> position, int64_t stream = 0) const {
    return uniform(position, is_wide() ? 53 : 24, stream);
  }

  // The normal distribution with mean 0 and variance 1, in the computation dtype of the result: by
  // Box and Muller's transform of a uniform number in (0, 1] and an angle.
  Expr normal(std::span<const Index> position) const {
    const int digits = is_wide() ? 53 : 31;  // more than float32 has: they count close to 0
    const Expr bits = is_wide() ? bits64(position) : bits32(position);
    const Expr radius =
        square_root(-2.0 * logarithm((leading(bits, digits) + 1) * std::ldexp(1.0, -digits)));
    return radius * apply<ExprOp::kCos>(2 * std::numbers::pi * precise_uniform(position, 1));
  }

  // Positive; as eager's on a GPU, it takes the numbers next to 1 for the one before them.
  Expr exponential(std::span<const Index> position) const {
    const double half_epsilon = is_wide() ? 0x1p-53 : 0x1p-24;
    const Expr left = 1 - precise_uniform(position);
    return -select(greater_equal(left, 1 - half_epsilon), -half_epsilon, logarithm(left));
  }

 private:
  bool is_wide() const { return meta_.dtype == DType::kFloat64; }

  Expr number(std::span<const Index> position, int64_t stream) const {
    IndexContext& indices = call_.indices();
    Index index = dot(indices, position, meta_.strides);
    Index span = indices.constant(1);
    for (size_t i = 0; i < meta_.sizes.size(); ++i)
      span = span + (meta_.sizes[i] + -1) * meta_.strides[i];
    return call_.exprs().index_value(index + span * stream);
  }

  // The most significant bits as a floating number.
  static Expr leading(Expr bits, int digits) {
    ExprContext& exprs = bits.context();
    const DType dtype = bits.dtype();
    const bool wide = dtype == DType::kInt64;
    const Expr shifted =
        apply<ExprOp::kShiftRight>(bits, exprs.constant_int(dtype, (wide ? 64 : 32) - digits));
    const Expr mask = exprs.constant_int(dtype, (int64_t{1} << digits) - 1);
    return exprs.cast(apply<ExprOp::kBitAnd>(shifted, mask),
                      wide ? DType::kFloat64 : DType::kFloat32);
  }

  OpCall& call_;
  const TensorMeta& meta_;
  Expr seed_;
};

// Why the library draws the numbers of a call; nothing where kernels do.
std::optional<Unsupported> obstacle(const OpCall& call) {
  if (!call.draws_in_kernels()) return Unsupported{"an option asks for eager's random numbers"};
  if (call.node().schema->find("generator") >= 0 && !call.is_none("generator"))
    return Unsupported{"it has a generator of its own"};
  return std::nullopt;
}

// True with probability p.
Expr happens(const Draws& draws, std::span<const Index> position, double p) {
  const Expr bits = draws.bits32(position);
  const double limit = std::nearbyint(std::ldexp(p, 32)) - 0x1p31;
  if (limit >= 0x1p31) return bits.context().constant_int(DType::kBool, 1);
  return apply<ExprOp::kLt>(
      bits, bits.context().constant_int(DType::kInt32, static_cast<int64_t>(limit)));
}

// Sets a result to the formula, which gives numbers of its computation dtype.
template <class F>
std::optional<Unsupported> set_random(OpCall& call, const F& formula, size_t output = 0) {
  const TensorMeta& meta = call.result(output);
  const Draws draws(call, meta);
  call.set(output, call.pointwise(meta, [&](std::span<const Index> position) {
    return call.exprs().cast(formula(draws, position), meta.dtype);
  }));
  return std::nullopt;
}

// The same where the formula is for floats alone.
template <class F>
std::optional<Unsupported> set_random_float(OpCall& call, const F& formula) {
  if (auto reason = obstacle(call)) return reason;
  if (!is_floating(call.result().dtype)) return Unsupported{"its result is no floating number"};
  return set_random(call, formula);
}

// ---- uniform numbers ----

// Of halves as many digits as they have, so that none is rounded to 1.
int digits_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 11;
    case DType::kBFloat16:
      return 8;
    case DType::kFloat32:
      return 24;
    default:
      return 53;
  }
}

std::optional<Unsupported> lower_rand(OpCall& call) {
  return set_random_float(call, [](const Draws& draws, std::span<const Index> position) {
    return draws.uniform(position, digits_of(draws.dtype()));
  });
}

// The library has messages of its own for what it refuses.
const Unsupported kRefused{"the library refuses its arguments"};

double greatest(DType dtype) { return largest_finite(dtype).real; }

std::optional<Unsupported> lower_uniform(OpCall& call) {
  const std::optional<double> from = real_argument(call, "from");
  const std::optional<double> to = real_argument(call, "to");
  if (!from || !to) return Unsupported{"its bounds are symbolic"};
  const DType dtype = call.result().dtype;
  if (!is_floating(dtype)) return Unsupported{"its result is no floating number"};
  const double most = greatest(dtype);
  if (!(std::abs(*from) <= most && std::abs(*to) <= most && *from <= *to && *to - *from <= most))
    return kRefused;
  return set_random_float(call, [&](const Draws& draws, std::span<const Index> position) {
    return draws.uniform(position, digits_of(draws.dtype())) * (*to - *from) + *from;
  });
}

// Whether the library takes `low` and `last` as bounds of numbers of the dtype; floats round them.
bool holds_integers(DType dtype, int64_t low, int64_t last) {
  if (is_floating(dtype)) {
    const double most = greatest(dtype);
    return static_cast<double>(low) >= -most && static_cast<double>(last) <= most;
  }
  if (dtype == DType::kBool) return low >= 0 && last <= 1;
  const int bits = 8 * size_of(dtype) - (is_signed(dtype) ? 1 : 0);
  if (bits >= 63) return is_signed(dtype) || low >= 0;
  const int64_t last_of_dtype = (int64_t{1} << bits) - 1;
  return low >= (is_signed(dtype) ? -last_of_dtype - 1 : 0) && last <= last_of_dtype;
}

// low + a number below `range`.
std::optional<Unsupported> lower_integers(OpCall& call) {
  if (auto reason = obstacle(call)) return reason;
  const bool has_low = call.node().schema->find("low") >= 0;
  const Index low_index = has_low ? call.index("low") : call.indices().constant(0);
  const Index high_index = call.index("high");
  if (!low_index.is_constant() || !high_index.is_constant())
    return Unsupported{"its bounds are symbolic"};
  const int64_t low = low_index.constant();
  const int64_t high = high_index.constant();
  if (low >= high || (low < 0 && high > std::numeric_limits<int64_t>::max() + low))
    return Unsupported{"its range is empty or wider than an int64"};
  if (!holds_integers(call.result().dtype, low, high - 1)) return kRefused;
  const int64_t range = high - low;
  return set_random(call, [&](const Draws& draws, std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    const auto constant = [&](int64_t value) { return exprs.constant_int(DType::kInt64, value); };
    if (range <= int64_t{1} << 31) {
      const Expr word = apply<ExprOp::kBitAnd>(exprs.cast(draws.bits32(position), DType::kInt64),
                                               constant(0xFFFFFFFF));
      return apply<ExprOp::kShiftRight>(word * constant(range), constant(32)) + constant(low);
    }
    const Expr bits = apply<ExprOp::kBitAnd>(draws.bits64(position),
                                             constant(std::numeric_limits<int64_t>::max()));
    return apply<ExprOp::kRemainder>(bits, constant(range)) + constant(low);
  });
}

// ---- other distributions ----

std::optional<Unsupported> lower_randn(OpCall& call) {
  return set_random_float(call, [](const Draws& draws, std::span<const Index> position) {
    return draws.normal(position);
  });
}

// Of an argument that is a known number.
bool is_at_least(const OpCall& call, std::string_view name, double least) {
  const std::optional<double> number = real_argument(call, name);
  return number && *number >= least;
}
bool is_positive(const OpCall& call, std::string_view name) {
  const std::optional<double> number = real_argument(call, name);
  return number && *number > 0;
}

// The mean and the deviation are numbers or tensors; a negative deviation is an error.
std::optional<Unsupported> lower_normal(OpCall& call) {
  const DType computed = computation_dtype(call.result().dtype);
  if (!call.is_tensor("std") && !is_at_least(call, "std", 0)) return kRefused;
  return set_random_float(call, [&](const Draws& draws, std::span<const Index> position) {
    Expr deviation = load_converted(call, "std", position, computed);
    if (call.is_tensor("std"))
      deviation = call.exprs().check(deviation, greater_equal(deviation, 0));
    return draws.normal(position) * deviation + load_converted(call, "mean", position, computed);
  });
}

std::optional<Unsupported> lower_log_normal(OpCall& call) {
  if (!is_positive(call, "std")) return kRefused;
  const DType computed = computation_dtype(call.result().dtype);
  return set_random_float(call, [&](const Draws& draws, std::span<const Index> position) {
    return exponential(draws.normal(position) * load_converted(call, "std", position, computed) +
                       load_converted(call, "mean", position, computed));
  });
}

std::optional<Unsupported> lower_exponential(OpCall& call) {
  const std::optional<double> rate = real_argument(call, "lambd");
  if (!rate) return Unsupported{"its rate is symbolic"};
  if (!(*rate > 0)) return kRefused;
  return set_random_float(call, [&](const Draws& draws, std::span<const Index> position) {
    return draws.exponential(position) * (1 / *rate);
  });
}

std::optional<Unsupported> lower_cauchy(OpCall& call) {
  if (!is_positive(call, "sigma")) return kRefused;
  const DType computed = computation_dtype(call.result().dtype);
  return set_random_float(call, [&](const Draws& draws, std::span<const Index> position) {
    const Expr slope =
        apply<ExprOp::kTan>(std::numbers::pi * (draws.precise_uniform(position) - 0.5));
    return load_converted(call, "median", position, computed) +
           load_converted(call, "sigma", position, computed) * slope;
  });
}

// ---- events of a probability ----

std::optional<Unsupported> lower_bernoulli_of_number(OpCall& call) {
  if (auto reason = obstacle(call)) return reason;
  const std::optional<double> p = real_argument(call, "p");
  if (!p || !(*p >= 0 && *p <= 1)) return Unsupported{"its p is symbolic or no probability"};
  return set_random(call, [&](const Draws& draws, std::span<const Index> position) {
    return happens(draws, position, *p);
  });
}

std::optional<Unsupported> bernoulli_of_tensor(OpCall& call, std::string_view name) {
  if (auto reason = obstacle(call)) return reason;
  const TensorValue& probabilities = call.tensor(name);
  if (!is_floating(probabilities.dtype)) return Unsupported{"its probabilities are no floats"};
  return set_random(call, [&](const Draws& draws, std::span<const Index> position) {
    ExprContext& exprs = call.exprs();
    const Expr p = exprs.cast(call.load_broadcast(probabilities, position),
                              computation_dtype(probabilities.dtype));
    const Expr checked = exprs.check(p, both(greater_equal(p, 0), less_equal(p, 1)));
    const Expr drawn = draws.uniform(position, p.dtype() == DType::kFloat64 ? 53 : 24);
    return apply<ExprOp::kLt>(drawn, checked);
  });
}
std::optional<Unsupported> lower_bernoulli(OpCall& call) {
  return bernoulli_of_tensor(call, "self");
}
std::optional<Unsupported> lower_bernoulli_of_tensor(OpCall& call) {
  return bernoulli_of_tensor(call, "p");
}

// What fraction of the elements a dropout drops; 0 where it does not train.
std::optional<double> dropped(const OpCall& call) {
  const bool trains = call.is_none("train") || call.boolean("train");
  return trains ? real_argument(call, "p") : 0.0;
}

std::optional<Unsupported> lower_dropout(OpCall& call) {
  const std::optional<double> p = dropped(call);
  if (!p) return Unsupported{"its p is symbolic"};
  if (!(*p >= 0 && *p <= 1)) return kRefused;
  if (*p == 0) {
    call.set(0, call.tensor("input"));
    return std::nullopt;
  }
  if (auto reason = obstacle(call)) return reason;
  const DType dtype = call.result().dtype;
  return set_random(call, [&](const Draws& draws, std::span<const Index> position) {
    const Expr x = convert(call.load(call.tensor("input"), position), dtype);
    const Expr scale = *p == 1 ? number(x, 0) : rounded(number(x, 1) / number(x, 1 - *p), dtype);
    return round_result(x * select(happens(draws, position, 1 - *p), scale, 0.0), dtype, dtype);
  });
}

// The mask has a buffer of its own, which the backward reads.
std::optional<Unsupported> lower_native_dropout(OpCall& call) {
  const std::optional<double> p = dropped(call);
  if (!p) return Unsupported{"its p is symbolic"};
  if (!(*p >= 0 && *p <= 1)) return kRefused;
  if (*p == 0) {
    set_elementwise(call, {"input"}, [](std::span<const Expr> x) { return x[0]; });
    call.set(1, call.pointwise(call.result(1), [&](std::span<const Index>) {
      return call.exprs().constant_int(DType::kBool, 1);
    }));
    return std::nullopt;
  }
  if (auto reason = obstacle(call)) return reason;
  const DType dtype = call.result().dtype;
  const TensorMeta& meta = call.result(1);
  const Draws draws(call, meta);
  const TensorValue mask = call.pointwise(
      meta, [&](std::span<const Index> position) { return happens(draws, position, 1 - *p); });
  call.set(0, call.pointwise(call.result(), [&](std::span<const Index> position) {
    const Expr x = convert(call.load(call.tensor("input"), position), dtype);
    const Expr kept = call.exprs().cast(call.load(mask, position), x.dtype());
    return round_result(x * kept * (*p == 1 ? 0 : 1 / (1 - *p)), dtype, dtype);
  }));
  call.set(1, mask);
  return std::nullopt;
}

// The slope of what is not positive is drawn, and given back as the noise.
std::optional<Unsupported> lower_rrelu_with_noise(OpCall& call) {
  const std::optional<double> lower = real_argument(call, "lower");
  const std::optional<double> upper = real_argument(call, "upper");
  if (!lower || !upper) return Unsupported{"its bounds are symbolic"};
  if (!call.boolean("training")) return Unsupported{"it draws nothing"};
  if (auto reason = obstacle(call)) return reason;
  const DType dtype = call.result().dtype;
  const TensorMeta& meta = call.result(1);
  const Draws draws(call, meta);
  const auto slope = [&](Expr x, std::span<const Index> position) {
    return select(less_equal(x, 0), draws.precise_uniform(position) * (*upper - *lower) + *lower,
                  number(x, 1));
  };
  for (size_t output : {size_t{0}, size_t{1}}) {
    call.set(output, call.pointwise(call.result(output), [&](std::span<const Index> position) {
      const Expr x = convert(call.load(call.tensor("self"), position), dtype);
      return round_result(output == 0 ? x * slope(x, position) : slope(x, position), dtype, dtype);
    }));
  }
  return std::nullopt;
}

// Trials until an event happens.
std::optional<Unsupported> lower_geometric(OpCall& call) {
  if (auto reason = obstacle(call)) return reason;
  const std::optional<double> p = real_argument(call, "p");
  if (!p || !(*p > 0 && *p < 1)) return Unsupported{"its p is symbolic or not between 0 and 1"};
  return set_random(call, [&](const Draws& draws, std::span<const Index> position) {
    const Expr left = 1 - draws.precise_uniform(position);
    const Expr trials = apply<ExprOp::kCeil>(logarithm(left) * number(left, 1 / std::log1p(-*p)));
    return maximum(trials, 1);
  });
}

constexpr LoweringRow kRows[] = {
    {"aten::rand", lower_rand},
    {"aten::rand_like", lower_rand},
    {"aten::uniform", lower_uniform},
    {"aten::randint", lower_integers},
    {"aten::randint.low", lower_integers},
    {"aten::randint_like", lower_integers},
    {"aten::randint_like.low_dtype", lower_integers},
    {"aten::randn", lower_randn},
    {"aten::randn_like", lower_randn},
    {"aten::normal.float_float", lower_normal},
    {"aten::normal.float_Tensor", lower_normal},
    {"aten::normal.Tensor_float", lower_normal},
    {"aten::normal.Tensor_Tensor", lower_normal},
    {"aten::normal_functional", lower_normal},
    {"aten::log_normal", lower_log_normal},
    {"aten::exponential", lower_exponential},
    {"aten::cauchy", lower_cauchy},
    {"aten::bernoulli", lower_bernoulli},
    {"aten::bernoulli.p", lower_bernoulli_of_number},
    {"aten::bernoulli.Tensor", lower_bernoulli_of_tensor},
    {"aten::geometric", lower_geometric},
    {"aten::dropout", lower_dropout},
    {"aten::native_dropout", lower_native_dropout},
    {"aten::rrelu_with_noise_functional", lower_rrelu_with_noise},
};

}  // namespace

std::span<const LoweringRow> random_lowerings() { return kRows; }

}  // namespace litz
