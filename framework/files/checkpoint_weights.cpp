#include "framework/files/checkpoint_weights.h"

#include "framework/files/checkpoint_folder.h"
#include "framework/files/hdf5.h"

namespace antichain {
namespace {

std::string newest(const std::string& path) {
  if (is_checkpoint(path)) return path;
  const std::string whole = newest_whole_checkpoint(path);
  if (whole.empty())
    throw Error("there is no checkpoint in " + path,
                "name a weight file, a folder that --checkpoint was given, or one of the folders step-… and "
                "best in it");
  return whole;
}

}  // namespace

Facts read_checkpoint_model(const std::string& path) {
  const std::string checkpoint = newest(path);
  return manifest_from_json(read_manifest(checkpoint), checkpoint).model;
}

Weights read_checkpoint_weights(const std::string& path) {
  const std::string checkpoint = newest(path);
  const Manifest manifest = manifest_from_json(read_manifest(checkpoint), checkpoint);
  Weights weights;
  for (const CheckpointFile& file : manifest.files) {
    std::vector<std::string> names;
    for (const CheckpointTensor& tensor : file.tensors)
      if (tensor.path.find('/') == std::string::npos) names.push_back(tensor.path);  // others are slots
    const std::string bytes = read_checkpoint_file(checkpoint, file);
    for (NamedTensor& tensor : read_hdf5(bytes, names, checkpoint + "/" + file.name))
      weights.add(std::move(tensor));
  }
  return weights;
}

}  // namespace antichain
