// Every option of a compilation, in one table from which the Options struct, the Python dictionary,
// the environment variables and the docs are made.
//
// What is given explicitly wins over the environment. Options marked as shaping code enter the
// cache key, and no others.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace litz {

// The values that an option takes, of those of its type. What a text means is checked where it is
// used: a target, a list of passes.
struct ValidValues {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  std::string text() const;  // "0 to 3"; empty where all are valid
};
inline constexpr ValidValues kAny{};
constexpr ValidValues between(double least, double most) { return {least, most}; }

// X(name, type, default, shapes code, environment variable, valid values, doc)
#define LITZ_OPTIONS(X)                                                                           \
  X(target, std::string, "native", true, "LITZ_TARGET", kAny,                                     \
    "CPU to generate code for: native, baseline, avx2, avx512, with +bf16, +vnni or +amx")        \
  X(device, std::string, "", false, "LITZ_DEVICE", kAny,                                          \
    "backend that graphs of CPU tensors run on: its name, or with a number: opencl:1; empty is "  \
    "the CPU")                                                                                    \
  X(compiler, std::string, "", false, "LITZ_COMPILER", kAny,                                      \
    "C++ compiler to use, a name or a path; empty takes the best one found")                      \
  X(optimization_level, int64_t, 2, true, "LITZ_OPTIMIZATION_LEVEL", between(0, 3),               \
    "-O level of the C++ compiler")                                                               \
  X(jobs, int64_t, 0, true, "LITZ_JOBS", between(0, 1024),                                        \
    "translation units compiled at once; 0 is one per processor")                                 \
  X(compile_time_limit, double, 300.0, false, "LITZ_COMPILE_TIME_LIMIT", between(0, 1e6),         \
    "seconds after which a compiler is stopped; 0 is never")                                      \
  X(cache, bool, true, false, "LITZ_CACHE", kAny, "keep compiled graphs on disk")                 \
  X(cache_dir, std::string, "", false, "LITZ_CACHE_DIR", kAny,                                    \
    "folder of the cache; empty is litz in the user's cache folder")                              \
  X(cache_size_mb, int64_t, 4096, false, "LITZ_CACHE_SIZE_MB", between(1, 1e9),                   \
    "bound on the cache's size")                                                                  \
  X(memory_pool_mb, int64_t, -1, false, "LITZ_MEMORY_POOL_MB", between(-1, 1e9),                  \
    "bound on the memory that Litz keeps for workspaces and large results on the CPU, of the "    \
    "whole "                                                                                      \
    "process; -1 is an eighth of the machine's")                                                  \
  X(trace, std::string, "", false, "LITZ_DEBUG", kAny,                                            \
    "folder into which every stage of each compilation is written; empty writes none")            \
  X(verify, bool, false, false, "LITZ_VERIFY", kAny,                                              \
    "check the invariants of every intermediate form")                                            \
  X(interpret, bool, false, false, "LITZ_INTERPRET", kAny,                                        \
    "run graphs by the reference interpreter instead of compiling them")                          \
  X(cuda_graphs, bool, false, false, "LITZ_CUDA_GRAPHS", kAny,                                    \
    "record runs on CUDA devices as CUDA graphs and replay them; what mode=\"reduce-overhead\" "  \
    "sets")                                                                                       \
  X(auto_cuda_graphs, bool, true, false, "LITZ_AUTO_CUDA_GRAPHS", kAny,                           \
    "without being asked, record runs whose launches take the host longer than the device takes " \
    "for them, in inference and training, where little memory is held and copied")                \
  X(freeze, bool, false, false, "LITZ_FREEZE", kAny,                                              \
    "in inference, compute once what depends on parameters and buffers alone; again when one "    \
    "of them changes")                                                                            \
  X(guard, std::string, "off", false, "LITZ_GUARD", kAny,                                         \
    "measure: in its first call time a graph's kernels beside eager's ops, and take what is "     \
    "faster, for each kernel and for the graph; or off")                                          \
  X(guard_seconds, double, 30.0, false, "LITZ_GUARD_SECONDS", between(0, 1e6),                    \
    "seconds after which the guard of a graph compiles and times no further kernels")             \
  X(gpu_dialect, std::string, "auto", true, "LITZ_GPU_DIALECT", kAny,                             \
    "what kernels for a GPU are written in: triton, cuda, or auto, which is triton where it can " \
    "be imported")                                                                                \
  X(autotune, bool, false, true, "LITZ_AUTOTUNE", kAny,                                           \
    "measure matrix products, convolutions and attention as kernels and in the library, and "     \
    "kernels for a GPU with several tiles or blocks on the device; take the fastest")             \
  X(autotune_seconds, double, 30.0, false, "LITZ_AUTOTUNE_SECONDS", between(0, 1e6),              \
    "seconds that measuring the kernels of a graph may take, without compiling them; on a CPU "   \
    "what was measured is kept in the cache for other graphs")                                    \
  X(matrix_products, std::string, "auto", true, "LITZ_MATRIX_PRODUCTS", kAny,                     \
    "let kernels compute matrix products and convolutions, with what reads them: off, on, or "    \
    "auto, which is where that pays: with autotune by measuring, else on a CPU with AVX2 "        \
    "(float16: without AMX), on a GPU by a model; on a GPU Triton kernels products of half "      \
    "floats")                                                                                     \
  X(attention, std::string, "auto", true, "LITZ_ATTENTION", kAny,                                 \
    "let kernels compute attention: off, on, or auto, which is where that pays: with autotune "   \
    "by measuring, else on a CPU with AVX2 (float16: without AMX), on a GPU (Triton, half "       \
    "floats) where the library has no fast kernel for its mask")                                  \
  X(random, std::string, "fused", true, "LITZ_RANDOM", kAny,                                      \
    "where random numbers come from: fused, kernels compute them from seeds that PyTorch's "      \
    "generator draws; or eager, the library draws the numbers that eager PyTorch would")          \
  X(layout_optimization, std::string, "auto", true, "LITZ_LAYOUT_OPTIMIZATION", kAny,             \
    "give convolutions channels-last tensors: off, on, or auto, which is where it pays")          \
  X(inline_producers, bool, true, true, "LITZ_INLINE_PRODUCERS", kAny,                            \
    "compute cheap values where they are used")                                                   \
  X(fuse, bool, true, true, "LITZ_FUSE", kAny, "let operations share kernels")                    \
  X(join_column_sums, bool, true, true, "LITZ_JOIN_COLUMN_SUMS", kAny,                            \
    "let Triton kernels that go through rows sum up their columns, too")                          \
  X(combine_kernels, bool, true, true, "LITZ_COMBINE_KERNELS", kAny,                              \
    "launch small independent kernels for a GPU together")                                        \
  X(order_groups, bool, true, true, "LITZ_ORDER_GROUPS", kAny,                                    \
    "run kernels that free memory first; else in the order of the program")                       \
  X(reuse_memory, bool, true, true, "LITZ_REUSE_MEMORY", kAny, "let intermediates share memory")  \
  X(max_kernel_nodes, int64_t, 400, true, "LITZ_MAX_KERNEL_NODES", between(1, 1e6),               \
    "scalar operations of one kernel after which fusion stops")                                   \
  X(disable_passes, std::string, "", true, "LITZ_DISABLE_PASSES", kAny,                           \
    "graph passes to leave out, separated by commas")                                             \
  X(fallback_ops, std::string, "", true, "LITZ_FALLBACK_OPS", kAny,                               \
    "ops to run in the library, separated by commas: aten::sum or aten::sum.dim_IntList")         \
  X(fallback_nodes, std::string, "", true, "LITZ_FALLBACK_NODES", kAny,                           \
    "FX nodes to run in the library, separated by commas, in graphs that have them")              \
  X(fallback_everything, bool, false, true, "LITZ_FALLBACK_EVERYTHING", kAny,                     \
    "run every op in the library")

using OptionValue = std::variant<bool, int64_t, double, std::string>;

struct Options {
#define LITZ_OPTION_FIELD(name, type, value, ...) type name = value;
  LITZ_OPTIONS(LITZ_OPTION_FIELD)
#undef LITZ_OPTION_FIELD
};

struct OptionRow {
  std::string_view name;
  std::string_view type;  // "bool", "int", "float", "str"
  OptionValue value;      // the default
  bool shapes_code;
  std::string_view variable;  // of the environment
  ValidValues valid;
  std::string_view doc;
};
const std::vector<OptionRow>& option_rows();

// The defaults, over them what the environment says, over that what is given. Throws UserError,
// naming what is valid, for an unknown name, a value of another type or one out of range.
Options make_options(
    const std::map<std::string, OptionValue>& given,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

// A value of the option's type from text, as an environment variable or a command line has it.
// Throws UserError as make_options does.
OptionValue parse_option(const std::string& name, const std::string& text);

// The value of an option by name, as text for a cache key or a message.
std::string option_text(const Options& options, std::string_view name);

// A warning, its details behind a semicolon, where some of the environment's variables begin with
// LITZ_ but mean nothing to Litz: most likely they are misspelt. Empty where all are known.
std::string unknown_variables_warning(const std::vector<std::string>& names);

// The entries of a comma-separated option.
std::vector<std::string> split_list(std::string_view text);

}  // namespace litz
