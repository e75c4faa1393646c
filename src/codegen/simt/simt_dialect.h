// What one C-like language for the threads of a device has of its own: words, and text for the
// functions that scalar operations become. Everything else is common: which threads do what
// (thread_plan.h), the loops around it (simt_kernel.h), the statements (cpp_body.h) and the
// prelude's fragments for scalars.
#pragma once

#include <string>
#include <string_view>

#include "codegen/cpp/prelude_fragments.h"

namespace litz {

struct SimtWords {
  // A kernel as far as its parameters; NAME and THREADS (of a block) stand for its own.
  std::string kernel;
  std::string global;    // in front of the type that a pointer to global memory points to
  std::string local;     // in front of the type of a variable that a block shares
  std::string block[2];  // the block's number along x and y
  std::string thread;    // the thread's number in its block
  std::string barrier;   // all threads of a block, and what they wrote to local memory
  // A statement: POINTER is a multiple of kDeviceAlignment. Empty: pointers may be anything.
  std::string aligned;
  // A statement: what lies at POINTER will soon be read. Empty: there is none.
  std::string prefetch;
  std::string unroll;       // in front of a loop that is to be unrolled whole
  std::string unroll_some;  // ... COUNT times
  // A function of a value and a distance: the value of the thread whose number in the warp is this
  // one's xor the distance. Empty: threads exchange values in local memory alone.
  std::string shuffle;
  int warp = 32;                     // threads that a shuffle reaches
  std::string int64_suffix = "LL";   // of an integer literal that needs 64 bits
  bool combines_kernels = false;     // functions that a kernel calls may have local memory
  bool status_in_arguments = false;  // checks report through a kernel's last argument
};

class SimtDialect {
 public:
  virtual ~SimtDialect() = default;

  const SimtWords& words() const { return words_; }

  // The text in front of the scalar types, and behind them. It defines LITZ_INLINE, and where the
  // language has none of these: __builtin_bit_cast, __builtin_inff, __builtin_inf, __builtin_nanf,
  // __builtin_nan; check_failed and checked_index.
  virtual std::string header() const = 0;
  virtual std::string helpers() const = 0;
  // f32, i64 and so on; those of 64-bit Linux. Half floats are no types.
  virtual std::string scalar_types() const { return std::string(prelude::scalar_types()); }
  virtual bool has_type(DType) const { return true; }

  // Definitions of scalar functions in the form of prelude_fragments.h; empty where the prelude's
  // own serves. `conversion` is for what convert_fragment there is for.
  virtual std::string fragment(std::string_view name, prelude::Shape shape) const = 0;
  virtual std::string conversion(std::string_view name, prelude::Shape from, DType to) const = 0;
  // The definition of a conversion of two elements at once, called `own`; empty where it is that of
  // one, twice.
  virtual std::string pair_conversion(std::string_view /*name*/, const std::string& /*own*/) const {
    return "";
  }

  // Whether the prelude's own text of a function, where it has one, is in this language.
  virtual bool takes_common(std::string_view /*name*/, DType) const { return true; }

  // Vectors: the text that defines litz_pack, and loads and stores of a whole pack, given the
  // versions for its halves.
  virtual std::string pack() const = 0;
  virtual std::string pack_access(std::string_view name, std::string_view half,
                                  prelude::Shape shape) const = 0;

  // Why elements of the dtype cannot be changed atomically, in words; empty where they can.
  virtual std::string missing_atomic(DType) const { return ""; }
  // What the definitions below need, once; and the definition, without LITZ_INLINE, of a function
  // that changes an element of memory to combine(element, x).
  virtual std::string atomic_helper() const = 0;
  virtual std::string atomic(const std::string& own, const std::string& combine,
                             const std::string& load, const std::string& store,
                             const std::string& value, const std::string& memory) const = 0;

 protected:
  explicit SimtDialect(SimtWords words) : words_(std::move(words)) {}

 private:
  SimtWords words_;
};

}  // namespace litz
