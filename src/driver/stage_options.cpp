#include "driver/stage_options.h"

#include <algorithm>
#include <thread>

#include "codegen/simt/thread_plan.h"
#include "codegen/triton/tile_plan.h"
#include "support/error.h"
#include "support/version.h"

namespace litz {

namespace {

// Of a kernel that takes about as long as its launch.
constexpr int64_t kCombinedIterations = int64_t{1} << 20;
// Columns that both dialects for a GPU take at once, at least.
constexpr int64_t kBandWidth = 32;

ProductKernels product_kernels(const Options& options, KernelDialect dialect,
                               const DeviceTarget& device) {
  const std::string& wanted = options.matrix_products;
  if (wanted != "off" && wanted != "on" && wanted != "auto")
    throw UserError("option matrix_products: there is no '" + wanted +
                    "'; there are auto, on, off");
  if (wanted == "off") return ProductKernels::kOff;
  if (dialect == KernelDialect::kCpp && device.is_cpu()) {
    // Vectors of 128 bits are too few for registers full of sums.
    if (cpu_target(options).vector_bytes <= 16) return ProductKernels::kOff;
  } else if (dialect != KernelDialect::kTriton || !device.loads_tiles) {
    return ProductKernels::kOff;
  }
  return wanted == "on" ? ProductKernels::kOn : ProductKernels::kAuto;
}

AttentionKernels attention_kernels(const Options& options) {
  if (options.attention == "off") return AttentionKernels::kOff;
  if (options.attention == "on") return AttentionKernels::kOn;
  if (options.attention == "auto") return AttentionKernels::kAuto;
  throw UserError("option attention: there is no '" + options.attention +
                  "'; there are auto, on, off");
}

// Vectors of 128 bits are too few for registers full of sums. A matrix unit is the library's for
// float16, as kernels use it for bfloat16 alone, with vectors that multiply pairs.
AttentionKernels cpu_attention_kernels(const Options& options, DType dtype) {
  const AttentionKernels attention = attention_kernels(options);
  const CpuTarget target = cpu_target(options);
  if (attention != AttentionKernels::kAuto) return attention;
  if (target.vector_bytes <= 16) return AttentionKernels::kOff;
  const bool has_tiles = dtype == DType::kBFloat16 && target.multiplies_tiles();
  if (is_half(dtype) && target.amx && !has_tiles)
    return options.autotune ? AttentionKernels::kChosen : AttentionKernels::kOff;
  return attention;
}

void read_fallbacks(const Options& options, LibraryFallbacks& fallbacks) {
  fallbacks.fallback_everything = options.fallback_everything;
  fallbacks.fallback_ops = split_list(options.fallback_ops);
  fallbacks.fallback_nodes = split_list(options.fallback_nodes);
}

}  // namespace

PassOptions pass_options(const Options& options) {
  PassOptions passes;
  const ProductKernels products = product_kernels(options, KernelDialect::kCpp, {});
  passes.library_products = products == ProductKernels::kOff;
  // A backend has no such kernels, nor has the interpreter, and calls the library on other ops than
  // these.
  const bool is_for_backend = !options.device.empty();
  if (!passes.library_products && !is_for_backend && !options.interpret) {
    const CpuTarget target = cpu_target(options);
    passes.panel_columns = 2 * target.vector_bytes / 4;
    passes.multiplies_pairs = target.avx512_bf16;
    passes.multiplies_tiles = target.multiplies_tiles();
  }
  switch (products) {
    case ProductKernels::kOff:
      break;
    case ProductKernels::kAuto:
      passes.convolution_products = ConvolutionProducts::kAuto;
      break;
    case ProductKernels::kOn:
      passes.convolution_products = ConvolutionProducts::kOn;
      break;
  }
  if (!is_for_backend) {
    const auto are_kernels = [](AttentionKernels attention) {
      return attention == AttentionKernels::kAuto || attention == AttentionKernels::kOn;
    };
    passes.attention_kernels = are_kernels(cpu_attention_kernels(options, DType::kFloat32));
    passes.float16_attention_kernels = are_kernels(cpu_attention_kernels(options, DType::kFloat16));
    passes.bfloat16_attention_kernels =
        are_kernels(cpu_attention_kernels(options, DType::kBFloat16));
  }
  read_fallbacks(options, passes);
  const std::string& layouts = options.layout_optimization;
  if (layouts == "off") {
    passes.layout_optimization = LayoutOptimization::kOff;
  } else if (layouts == "on") {
    passes.layout_optimization = LayoutOptimization::kOn;
  } else if (layouts != "auto") {
    throw UserError("option layout_optimization: there is no '" + layouts +
                    "'; there are auto, on, off");
  }
  return passes;
}

LoweringOptions lowering_options(const Options& options, KernelDialect dialect,
                                 const DeviceTarget& device) {
  LoweringOptions lowering;
  const AttentionKernels attention = attention_kernels(options);
  if (dialect == KernelDialect::kTriton) lowering.attention = attention;
  // Without a compiler the library is faster by far.
  if (dialect == KernelDialect::kCpp ||
      (dialect == KernelDialect::kInterpreter && attention == AttentionKernels::kOn)) {
    lowering.cpu_attention = cpu_attention_kernels(options, DType::kFloat32);
    lowering.cpu_float16_attention = cpu_attention_kernels(options, DType::kFloat16);
    lowering.cpu_bfloat16_attention = cpu_attention_kernels(options, DType::kBFloat16);
  }
  if (options.random != "fused" && options.random != "eager")
    throw UserError("option random: there is no '" + options.random + "'; there are fused, eager");
  lowering.random_in_kernels = options.random == "fused";
  lowering.matrix_products = product_kernels(options, dialect, device);
  if (dialect == KernelDialect::kCpp) {
    // PyTorch's library needs AVX-512 to be fast with half floats: without it, it takes six times
    // as long as with float32. With it, it still does with float16, unless there is AVX512-FP16 as
    // on all CPUs with AMX, but bfloat16 is fast, and a kernel has to multiply pairs.
    const CpuTarget target = cpu_target(options);
    lowering.float16_products = !target.amx;
    lowering.bfloat16_products = target.isa == CpuTarget::Isa::kAvx2 || target.avx512_bf16;
    lowering.bfloat16_convolutions = target.avx512_bf16;
    lowering.bfloat16_tiles = target.multiplies_tiles();
  }
  read_fallbacks(options, lowering);
  return lowering;
}

ScheduleOptions schedule_options(const Options& options, KernelDialect dialect,
                                 const DeviceTarget& device) {
  ScheduleOptions schedule;
  schedule.inline_producers = options.inline_producers;
  schedule.fuse = options.fuse;
  schedule.order_groups = options.order_groups;
  schedule.reuse_memory = options.reuse_memory;
  schedule.max_kernel_nodes = static_cast<int>(options.max_kernel_nodes);
  schedule.join_column_sums = options.join_column_sums;
  schedule.combine_kernels = options.combine_kernels;
  schedule.one_direction = dialect == KernelDialect::kCpp && device.is_cpu();
  if (!device.is_cpu()) {
    schedule.few_rows = device.multiprocessors;
    schedule.band_width = kBandWidth;
    schedule.few_bands = device.multiprocessors / 2;
    schedule.online_sums = true;
    schedule.combined_iterations = kCombinedIterations;
  }
  if (device.kind == "cuda") {
    schedule.sums_of_deviations = dialect == KernelDialect::kTriton;
    schedule.column_sums =
        dialect == KernelDialect::kTriton ? triton_column_sums() : simt_column_sums();
  }
  schedule.matrix_products = product_kernels(options, dialect, device) != ProductKernels::kOff;
  schedule.converts_factors = dialect == KernelDialect::kTriton;
  return schedule;
}

CpuTarget cpu_target(const Options& options) {
  Result<CpuTarget> target = CpuTarget::parse(options.target);
  if (!target) throw UserError("option target: " + target.reason());
  return *target;
}

int translation_units(const Options& options) {
  if (options.jobs > 0) return static_cast<int>(options.jobs);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

CppArtifactOptions artifact_options(const Options& options, const CpuTarget& target) {
  CppArtifactOptions printing;
  printing.target.avx2 = target.isa != CpuTarget::Isa::kBaseline128;
  printing.target.avx512 = target.isa == CpuTarget::Isa::kAvx512;
  printing.target.fma = target.fma;
  printing.target.f16c = target.f16c;
  printing.target.bf16_pairs = target.avx512_bf16 && target.vector_bytes == 64;
  printing.target.bf16_tiles = target.multiplies_tiles();
  printing.target.vector_bytes = target.vector_bytes;
  printing.units = translation_units(options);
  printing.description =
      "{\"litz\": \"" + std::string(version()) + "\", \"target\": \"" + target.text() + "\"}";
  return printing;
}

}  // namespace litz
