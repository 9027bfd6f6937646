#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "framework/bounded_file.h"
#include "framework/error.h"
#include "framework/files/weights.h"
#include "models/graph_file.h"

namespace antichain {

std::string graph_file_in(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  return (std::filesystem::path(path) / graph_in_folder).string();
}

namespace {

// Weights and archives begin otherwise.
bool begins_as_text(const std::string& bytes) {
  return std::ranges::all_of(bytes, [](unsigned char c) { return c >= ' ' || std::isspace(c); });
}

void refuse_weights(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return;
  std::string head(8, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(head.data(), std::streamsize(head.size()));
  head.resize(size_t(in.gcount()));
  if (!begins_as_text(head))
    throw Error(
        fmt::format("{} is no graph.json: it is no text", file),
        "weights, such as torch.save's or safetensors', have no network in them: from_torch writes both "
        "from a module, and --init or --weights read weights");
}

}  // namespace

GraphFile read_graph_file(const std::string& path) {
  refuse_onnx(path);
  const std::string file = graph_file_in(path);
  refuse_weights(file);
  return {read_bounded(file, most_graph_bytes), file};
}

}  // namespace antichain
