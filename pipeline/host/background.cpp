#include "pipeline/host/background.h"

#include <chrono>
#include <exception>
#include <utility>

#include "framework/error.h"

namespace antichain {

Background::~Background() {
  if (thread_.joinable()) thread_.join();
}

void Background::start(Work work) {
  ANTICHAIN_CHECK(!busy(), "one piece of work at a time");
  done_ = false;
  outcome_ = {};
  thread_ = std::thread([this, work = std::move(work)] {
    try {
      outcome_.text = work([this] { ++beats_; });
    } catch (const std::exception& error) {
      outcome_ = {false, error.what()};
    }
    done_ = true;
  });
}

Background::Outcome Background::take(Progress& progress) {
  ANTICHAIN_CHECK(busy(), "only what was started has an outcome");
  for (uint64_t seen = beats_; !done_; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (const uint64_t now = beats_; now != seen) seen = now, progress.beat();
  thread_.join();
  thread_ = {};
  done_ = false;
  return std::exchange(outcome_, {});
}

}  // namespace antichain
