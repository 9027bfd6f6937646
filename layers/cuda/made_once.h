// Makes values when their key is first requested, and keeps them. Where making one throws, nothing is kept,
// and the next caller makes it again. It is for one thread.
#pragma once

#include <map>

namespace antichain::cuda {

template <class Key, class Value>
class MadeOnce {
 public:
  template <class Make>
  Value of(const Key& key, const Make& make) {
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_.emplace(key, make()).first->second;
  }

 private:
  std::map<Key, Value> made_;
};

}  // namespace antichain::cuda
