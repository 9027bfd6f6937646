// Of the errors of threads that fail together: the first that is not merely the consequence of another
// rank's.
#pragma once

#include <exception>
#include <mutex>

#include "framework/error.h"

namespace antichain {

// Safe from several threads.
class FirstError {
 public:
  void note(const std::exception_ptr& error) {
    std::lock_guard lock(mutex_);
    std::exception_ptr& first = is_consequence(error) ? consequence_ : original_;
    if (!first) first = error;
  }
  // A consequence only where nothing else was noted; nothing where there was no error. After the threads have
  // ended.
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
