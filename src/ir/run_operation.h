// Runs one loop operation of a program on memory: the interpreter between its loops and its
// columns.
#pragma once

#include "ir/column_code.h"
#include "ir/program.h"

namespace litz {

// What an operation needs to know of the call.
struct OperationMemory {
  ColumnCompiler::SizeOf size_of;
  ColumnCompiler::RegionOf region_of;  // of every buffer that the operation reads or writes
};

// Each returns the status of a check that failed; the output's values are then unspecified.
//
// Sums and products of floats accumulate in double, in order, and round once; other reductions and
// scans are exact. The product of an Attention is rounded to float32, its weights not at all. A
// Scatter combines in the output's dtype, float16 and bfloat16 in float32 with a
// rounding after each element.
LitzStatus run_operation(const Pointwise& operation, const OperationMemory& memory);
LitzStatus run_operation(const Reduction& operation, const OperationMemory& memory);
LitzStatus run_operation(const Attention& operation, const OperationMemory& memory);
LitzStatus run_operation(const Scan& operation, const OperationMemory& memory);
LitzStatus run_operation(const Scatter& operation, const OperationMemory& memory);

// Copies all elements; both have the same sizes and dtype, and any strides.
void copy_elements(const MemoryRegion& from, const MemoryRegion& to);

}  // namespace litz
