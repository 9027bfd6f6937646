// A Variable sets the environment as long as it lives.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace antichain {

class Variable {
 public:
  // Without a value the variable is unset.
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_); }
  Variable(const Variable&) = delete;

 private:
  void set(const std::optional<std::string>& value) const {
    value ? ::setenv(name_, value->c_str(), 1) : ::unsetenv(name_);
  }

  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace antichain
