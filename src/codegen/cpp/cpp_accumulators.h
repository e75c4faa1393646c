// The accumulators of one reduction in generated C++: in a register, in an array of one tile, or as
// partial results of threads.
//
// Some have a pair of them. An arg-reduction has the value and its position: ties go to the
// smallest position, and NaN is the extreme value. An online sum (codegen/common/online_sums.h) has
// the sum and the greatest value so far; it has no arrays and no partial results.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "codegen/cpp/cpp_body.h"

namespace litz {

class Accumulator {
 public:
  Accumulator(const KernelReduction& reduction, uint32_t number, int lanes, Prelude& prelude);

  const KernelReduction& reduction() const { return *reduction_; }
  uint32_t number() const { return number_; }
  std::string name(const std::string& suffix) const {
    return "acc" + std::to_string(number_) + suffix;
  }

  // ---- in registers: vectors of `lanes`, or scalars where lanes is 1 ----
  void declare(IndentedBuffer& out, const std::string& suffix);
  void declare_turns(IndentedBuffer& out, int turns);  // an array of so many: name("[t]")
  void accumulate(CppBody& body, const std::string& suffix);
  void merge(CppBody& body, const std::string& into, const std::string& from);
  std::string finish(CppBody& body);  // result_name(), of the scalar result
  std::string result_name() const { return "red" + std::to_string(number_); }

  // ---- of a group of GPU threads: scalars, one or a pair ----
  // Type and name of each variable; with the suffix of registers or of anything else.
  std::vector<std::pair<std::string, std::string>> total_variables(const std::string& suffix) const;
  // Declares them, starting from what finish() of the thread's own accumulator returned.
  void begin_total(IndentedBuffer& out, const std::string& suffix, const std::string& finished);
  std::string total_name(const std::string& suffix) const;
  // An online sum, when all its parts are together and `greatest` is the maximum.
  void settle(IndentedBuffer& out, const std::string& sum, const std::string& greatest);

  // ---- in an array, one element per lane of the tile ----
  void declare_array(IndentedBuffer& out, int64_t elements, const std::string& suffix = "");
  void fill_array(IndentedBuffer& out, const std::string& suffix = "");
  std::string accumulate_in_array(CppBody& body,
                                  const std::string& element);  // name of the new vector
  // Combines the register with the elements of array `into`, or makes it them.
  void merge_into_array(CppBody& body, const std::string& element, const std::string& from,
                        const std::string& into);
  void store_in_array(CppBody& body, const std::string& element, const std::string& from);
  // Combines the elements of array `from` with the array's own.
  void merge_arrays(CppBody& body, const std::string& from);

  // ---- partial results: arrays of scalars, one per chunk and row ----
  void store_partial(CppBody& body, const std::string& subscript);
  void declare_scalar(IndentedBuffer& out, const std::string& suffix);
  void merge_partial(CppBody& body, const std::string& subscript);
  std::string finish_scalar(CppBody& body);
  std::vector<std::string> partial_members() const;
  std::vector<std::string> partial_unpacks() const;
  std::vector<std::pair<std::string, std::string>> partial_arrays(
      const std::string& elements) const;

 private:
  bool is_arg() const;
  bool is_online() const { return reduction_->online.has_value(); }
  bool is_pair() const { return is_arg() || is_online(); }
  bool is_bool() const { return dtype_ == DType::kBool; }
  std::string scalar_type() const;
  std::string companion(const std::string& suffix) const {
    return (is_online() ? "top" : "pos") + std::to_string(number_) + suffix;
  }
  std::string companion_type(int lanes) const;
  std::string companion_start(int lanes) const;
  std::string exponential(const std::string& x, int lanes);
  std::string combine(const std::string& a, const std::string& b, int lanes);
  std::string better(const std::string& value, const std::string& best,
                     const std::string& earlier) const;
  std::string narrow_mask(const std::string& mask);
  std::string wide_mask(const std::string& mask);
  std::string start(int lanes);
  std::string vector_type();
  std::string vector_or_scalar_type();
  void update(CppBody& body, const std::string& variable, std::string updated, int bytes);
  void accumulate_exponential(CppBody& body, const std::string& suffix, const std::string& value);
  std::string update_array(CppBody& body, const std::string& suffix, const std::string& element,
                           const std::string& value, const std::string& position);

  const KernelReduction* reduction_;
  uint32_t number_;
  int lanes_;
  Prelude* prelude_;
  DType dtype_;     // in registers
  int mask_bytes_;  // of a bool accumulator's vector
  int64_t array_elements_ = 0;
};

}  // namespace litz
