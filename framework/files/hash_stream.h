// Hashes bytes that come piece by piece. The hash is that of hash_bytes() (framework/random.h) over all of
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace antichain {

class HashStream {
 public:
  HashStream();
  ~HashStream();
  HashStream(HashStream&&) noexcept;
  void add(std::string_view);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace antichain
