// A FirstError collects the errors of threads that fail together. It keeps the first one that is not merely a
// consequence of another rank's failure.
#pragma once

#include <exception>
#include <mutex>

#include "framework/error.h"

namespace antichain {

// Several threads may call it at once.
class FirstError {
 public:
  void note(const std::exception_ptr& error) {
    std::lock_guard lock(mutex_);
    std::exception_ptr& first = is_consequence(error) ? consequence_ : original_;
    if (!first) first = error;
  }
  // Call this after the threads have ended. It throws a consequence only where no other error was noted, and
  // does nothing where there was no error.
  void rethrow() const {
    if (original_) std::rethrow_exception(original_);
    if (consequence_) std::rethrow_exception(consequence_);
  }

 private:
  static bool is_consequence(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      return e.code() == ExitCode::peer_failed;
    } catch (...) {
      return false;
    }
  }

  std::mutex mutex_;
  std::exception_ptr original_, consequence_;
};

}  // namespace antichain
