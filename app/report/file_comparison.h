// This file sets two profiles or two plans side by side.
#pragma once

#include <string>

namespace antichain {

struct FileComparison {
  bool equal = false;  // profiles: the same network and figures; plans: the same stages on the same ranks
  std::string text;    // tables
  std::string verdict, json;
};

// The content of the files tells which kind they are. Throws Error when they are not of one kind, or can't be
// read.
FileComparison compare_files(const std::string& a, const std::string& b);

}  // namespace antichain
