// What one program of a matrix product's kernel works on at a time.
#pragma once

#include <string>
#include <vector>

#include "codegen/triton/triton_kernel.h"
#include "schedule/plan.h"

namespace litz {

struct ProductTile {
  int rows = 128;  // of the result
  int columns = 128;
  int factors = 64;  // at a time
  int warps = 4;
  int stages = 3;  // of loads that are on their way at once
  // Above 1, so many programs share the factors of a tile; a second function adds up what they
  // made, always in the same order.
  int splits = 1;

  bool operator==(const ProductTile&) const = default;
};

// Of kernels whose sizes are constants: the best for most sizes, and others that may be better for
// some.
ProductTile plan_product(const Kernel& kernel, const TritonDevice& device);
std::vector<ProductTile> other_product_tiles(const Kernel& kernel, const TritonDevice& device);

// "64 by 128, 64 factors, 4 stages, 4 warps".
std::string to_string(const ProductTile& tile);

// Factors of each part but the last, in whole steps.
int64_t stretch_of(int64_t factors, int splits, int step);

// Programs that are at work at once: two of 4 warps on each multiprocessor, more of small tiles, if
// its shared memory holds what they load.
int64_t resident_programs(const ProductTile& tile, const TritonDevice& device);

}  // namespace litz
