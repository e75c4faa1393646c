// The three failures. UserError: the input is at fault; says what, where and what to do.
// Unsupported: a value, not an exception; leads to a fallback or to a list. InternalError: a fault
// in Litz; the driver leaves a reproducer.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace litz {

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Why something cannot be lowered, in words that may follow "because".
struct Unsupported {
  std::string reason;
};

// Either a value or the reason why there is none.
template <class T>
class Result {
 public:
  Result(T value) : state_(std::move(value)) {}              // NOLINT: implicit on purpose
  Result(Unsupported reason) : state_(std::move(reason)) {}  // NOLINT: implicit on purpose
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  const T& operator*() const { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  const std::string& reason() const { return std::get<1>(state_).reason; }

 private:
  std::variant<T, Unsupported> state_;
};

[[noreturn]] void throw_internal(const char* condition, const char* file, int line,
                                 const std::string& message);

// Checks an invariant of Litz itself. The message is evaluated only on failure.
#define LITZ_CHECK(condition, message)                                                   \
  do {                                                                                   \
    if (!(condition)) ::litz::throw_internal(#condition, __FILE__, __LINE__, (message)); \
  } while (false)

}  // namespace litz
