// The accumulators of one reduction in generated C++: in a register, in an array of one tile, or as
// partial results of threads.
//
// An arg-reduction has two: the value and its position. Ties go to the smallest position, and NaN
// is the extreme value.
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
  void accumulate(CppBody& body, const std::string& suffix);
  void merge(CppBody& body, const std::string& into, const std::string& from);
  std::string finish(CppBody& body);  // name of the scalar result

  // ---- of a group of GPU threads: scalars, of an arg-reduction a value and a position ----
  // Type and name of each variable; with the suffix of registers or of anything else.
  std::vector<std::pair<std::string, std::string>> total_variables(const std::string& suffix) const;
  // Declares them, starting from what finish() of the thread's own accumulator returned.
  void begin_total(IndentedBuffer& out, const std::string& suffix, const std::string& finished);
  std::string total_name(const std::string& suffix) const;

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
  std::string array_element(const std::string& element) const;  // pointer to the result

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
  bool is_bool() const { return dtype_ == DType::kBool; }
  std::string scalar_type() const;
  std::string position_name(const std::string& suffix) const {
    return "pos" + std::to_string(number_) + suffix;
  }
  std::string combine(const std::string& a, const std::string& b, int lanes);
  std::string better(const std::string& value, const std::string& best,
                     const std::string& earlier) const;
  std::string narrow_mask(const std::string& mask);
  std::string wide_mask(const std::string& mask);
  std::string start(int lanes);
  std::string vector_type();
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
