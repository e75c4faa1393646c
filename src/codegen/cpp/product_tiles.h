// How a matrix product is cut into pieces on a CPU.
//
//   item     a block of the result, block_strips strips high and block_columns wide; threads share
//            items out, those of the same columns one after the other
//   steps    of `factors` at a time, added up in the block: few terms are summed up in a register,
//            so that the error stays a library's
//   panel    the right operand's columns of one register tile, packed: [factor][column]
//   strip    the left operand's rows of one register tile, read where they are
//
// The right operand's panel of a step stays in the first level cache, while the strips pass by.
// Strips are as high as the registers hold, or one row less, so that no row is left over.
//
// A matrix unit (AMX) computes a register tile of pairs in tiles of its own: strips are two of them
// high, or all less by as much, or the last one is what is left; a step is whole tiles of factors,
// and those that are left over are a step of their own.
//
// Where there are so few rows that packing is much of the work, the right operand is read where it
// is, too: in vectors along its columns, or along the factors where these are neighbours of both.
#pragma once

#include <cstdint>

namespace litz {

struct ProductSize {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t factors = 0;
  int64_t parts = 1;  // products that are added up
  // Of float32, whose neighbours are neighbours in memory: rows or columns of the right operand,
  // factors of both.
  bool has_rows = false;
  bool has_dots = false;
  bool in_panels = false;  // the right operand is packed already
  bool matrix_unit = false;
  bool along_rows = false;  // rows of the result are neighbours where they are stored
};

struct ProductTiles {
  enum class Form : uint8_t {
    kPacked,
    kInPlace,  // columns are neighbours
    kDots,     // factors are: `vectors` is the number of columns of a register tile
    kTiles,    // packed, and a matrix unit multiplies
  };
  Form form = Form::kPacked;
  int lanes = 8;
  int vectors = 2;  // of a panel
  int64_t strip_rows = 0;
  int64_t tall_strips = 0;  // the first ones
  int64_t low_rows = 0;     // of the others
  int64_t strips = 0;
  int64_t block_strips = 0;
  int64_t block_columns = 0;  // whole panels and vectors
  int64_t factors = 0;        // of a step

  bool packs() const { return form == Form::kPacked || form == Form::kTiles; }
  int64_t panel() const { return form == Form::kDots ? vectors : int64_t{lanes} * vectors; }
  int64_t row_blocks() const { return (strips + block_strips - 1) / block_strips; }
  int64_t block_rows() const { return block_strips * strip_rows; }  // at most
};

// Vectors of sums that the registers hold next to the operands.
int64_t most_sums(int vector_bytes);

// Every extent at least 1.
ProductTiles plan_product_tiles(const ProductSize& size, int vector_bytes);

// Columns in blocks.
int64_t column_blocks(const ProductSize& size, const ProductTiles& tiles);

// Of `extent` batches next to each other that share the right operand, how many are items together:
// a panel stays in the first level cache for the rows of all of them.
int64_t batches_of_item(const ProductSize& size, const ProductTiles& tiles, int64_t extent);

// Whether rows of the left operand, so many bytes apart, are too many for the first level cache,
// because they lie in the same few lines of it. A matrix unit reads whole lines, once.
bool are_far_rows(const ProductTiles& tiles, int64_t bytes);

// How many rows of float32 ahead, so many elements apart, the right operand is brought into the
// caches; 0: not at all.
int64_t rows_ahead(const ProductTiles& tiles, int64_t stride);

// Rows of a strip of float32 that a tile brings into the second level cache for the step after its
// own, so that the panels of a block share out the strip; 0: none.
int64_t next_rows(const ProductSize& size, const ProductTiles& tiles);

// Of a right operand that is packed for each step: whether the tiles of a step bring what is packed
// for the next one into the second level cache.
bool brings_source(const ProductSize& size, const ProductTiles& tiles);

// Of one item.
double item_nanoseconds(const ProductSize& size, const ProductTiles& tiles);

}  // namespace litz
