// How an attention is cut into pieces on a CPU.
//
//   item     the queries of `block_strips` strips; threads share items out, those of one batch
//            after the other
//   strip    the queries of one register tile, as many as registers hold
//   step     `keys` keys: the scores of a strip and a step stay in the first level cache, and so do
//            the sums that they are added to
//
// A matrix unit (AMX) multiplies strips of two of its tiles' rows. Factors and keys fill whole
// tiles, with zeros, and so do strips: what rows behind the last one get is nobody's.
//
// Where a batch has few queries, keys and values are read where they are. Else they are packed, as
// the right operands of products are: panels of vectors, for all keys of a batch at once where the
// caches hold them, else for each step of an item, which has more strips then.
#pragma once

#include <cstdint>

namespace litz {

struct AttentionSize {
  double items = 1;     // of batches; a guess where it is not known
  int64_t queries = 0;  // 0: not known
  int64_t keys = 0;     // 0: not known
  int64_t factors = 0;
  int64_t features = 0;
  int64_t rows = 0;          // not 0: queries of an item that are to stay together
  bool is_in_order = true;   // keys and values are equally far from each other
  bool pairs = false;        // factors and keys are packed as pairs of bfloat16
  bool matrix_unit = false;  // ... and multiplied in a matrix unit's tiles
};

struct AttentionTiles {
  int lanes = 8;
  int64_t strip_rows = 0;   // of the first strips
  int64_t tall_strips = 0;  // so many; the others have one row less. Not known: rows of all
  int64_t strips = 0;       // 0: not known
  int64_t block_strips = 0;
  int64_t keys = 0;  // of a step, whole panels
  bool packs_all = false;
  bool in_place = false;
  bool matrix_unit = false;
  bool ends_short = false;  // the last strip may have fewer rows than the others

  int64_t panel() const { return int64_t{2} * lanes; }
  int64_t block_rows() const { return block_strips * strip_rows; }  // at most
};

// Of a register tile, which is two vectors wide.
int64_t most_tile_rows(int vector_bytes);

// Factors and features are at least 1.
AttentionTiles plan_attention_tiles(const AttentionSize& size, int vector_bytes);

// Of a query and a key.
double attention_nanoseconds(const AttentionSize& size, const AttentionTiles& tiles);

}  // namespace litz
