// A TemporaryFolder is removed when its test ends; this file also makes record files to put into it.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace antichain {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "antichain-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }
  std::string str() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::filesystem::path& file, const std::vector<uint8_t>& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
}

// Returns records of the CIFAR-10 layout: record r has label (first + r) % 10, and its pixel p is (first + r
// + p) % 256.
inline std::vector<uint8_t> records(int count, int first = 0) {
  std::vector<uint8_t> bytes;
  for (int r = first; r < first + count; ++r) {
    bytes.push_back(uint8_t(r % 10));
    for (int p = 0; p < 3072; ++p) bytes.push_back(uint8_t((r + p) % 256));
  }
  return bytes;
}

}  // namespace antichain
