#include "framework/files/checkpoint_weights.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "framework/files/checkpoint_folder.h"
#include "framework/files/hdf5.h"
#include "framework/paths.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view averages = "ema";

// A CheckpointPart is a folder, and what of it is meant.
struct CheckpointPart {
  std::string folder;
  bool averages = false;
};

CheckpointPart part_of(const std::string& path) {
  const fs::path p = path.ends_with('/') ? fs::path(path).parent_path() : fs::path(path);
  if (p.filename() == averages && !exists(p.string()) && is_folder(p.parent_path()))
    return {p.parent_path(), true};
  return {path, false};
}

std::string newest(const std::string& path) {
  if (is_checkpoint(path)) return path;
  const std::string whole = newest_whole_checkpoint(path);
  if (whole.empty())
    throw Error("there is no checkpoint in " + path,
                "name a weight file, a folder that --checkpoint was given, or one of the folders step-… and "
                "best in it");
  return whole;
}

// Returns the paths of a file's tensors by the names that they have in a network.
std::map<std::string, std::string> chosen_paths(const CheckpointFile& file, bool averages_wanted) {
  const std::string group = std::string(averages) + "/";
  std::map<std::string, std::string> paths;
  for (const CheckpointTensor& tensor : file.tensors) {
    const bool slot = tensor.path.find('/') != std::string::npos;
    if (!slot) paths.try_emplace(tensor.path, tensor.path);
    if (slot && averages_wanted && tensor.path.starts_with(group))
      paths[tensor.path.substr(group.size())] = tensor.path;
  }
  return paths;
}

}  // namespace

bool is_in_checkpoint(const std::string& path) { return is_folder(part_of(path).folder); }

Facts read_checkpoint_model(const std::string& path) {
  const std::string checkpoint = newest(part_of(path).folder);
  return manifest_from_json(read_manifest(checkpoint), checkpoint).model;
}

Weights read_checkpoint_weights(const std::string& path) {
  const CheckpointPart part = part_of(path);
  const std::string checkpoint = newest(part.folder);
  const Manifest manifest = manifest_from_json(read_manifest(checkpoint), checkpoint);
  Weights weights;
  bool averaged = false;
  for (const CheckpointFile& file : manifest.files) {
    std::vector<std::string> paths, names;
    for (const auto& [name, in_file] : chosen_paths(file, part.averages)) {
      names.push_back(name), paths.push_back(in_file);
      averaged |= in_file != name;
    }
    const std::string bytes = read_checkpoint_file(checkpoint, file);
    std::vector<NamedTensor> tensors = read_hdf5(bytes, paths, checkpoint + "/" + file.name);
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].name = names[i];
      weights.add(std::move(tensors[i]));
    }
  }
  if (part.averages && !averaged)
    throw Error(fmt::format("{} has no averaged weights: its run was without --ema", checkpoint),
                fmt::format("leave out /{}", averages));
  return weights;
}

}  // namespace antichain
