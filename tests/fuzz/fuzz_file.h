// Readers that take a file's name get the input as a file in memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/fuzz/fuzz.h"

namespace antichain {

class FuzzFile {
 public:
  explicit FuzzFile(const std::string& bytes) : descriptor_(::memfd_create("input", 0)) {
    if (descriptor_ < 0 || ::write(descriptor_, bytes.data(), bytes.size()) != ssize_t(bytes.size()))
      fuzz_fail("no memory for a file", "");
  }
  ~FuzzFile() { ::close(descriptor_); }
  FuzzFile(const FuzzFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace antichain
