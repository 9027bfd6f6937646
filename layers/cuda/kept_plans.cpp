#include "layers/cuda/kept_plans.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "framework/cache_folder.h"
#include "framework/error.h"
#include "framework/new_file.h"
#include "framework/paths.h"
#include "framework/random.h"

namespace antichain::cuda {
namespace {

namespace fs = std::filesystem;

// Returns "" where there is no folder for files that can be made again.
fs::path folder() {
  const std::string cache = user_cache_folder();
  return cache.empty() ? fs::path() : fs::path(cache) / "cudnn-plans";
}

fs::path file_of(const std::string& key) {
  uint64_t hash = key.size();
  for (const char c : key) hash = mix(hash, uint64_t(uint8_t(c)));
  return folder() / fmt::format("{:016x}.txt", hash);
}

}  // namespace

// The file's first line is its key, so that two keys of one hash are not taken for each other.
std::string kept_plan_text(const std::string& key) {
  if (folder().empty()) return "";
  std::ifstream file(file_of(key), std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || line != key) return "";
  return {std::istreambuf_iterator<char>(file), {}};
}

// Two processes may write the same text at the same time: each renames a file of its own. Without the file
// the plan is searched for again.
void keep_plan_text(const std::string& key, const std::string& text) {
  if (folder().empty() || text.empty()) return;
  try {
    make_folders(folder().string());
    NewFile file(file_of(key).string());
    file.write(key + '\n' + text);
    file.commit();
  } catch (const Error&) {
  }
}

}  // namespace antichain::cuda
