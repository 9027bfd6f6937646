#include "pipeline/stage_state.h"

#include <fmt/format.h>

#include <map>

#include "framework/checkpoint_folder.h"
#include "framework/hdf5.h"
#include "framework/state_dict.h"

namespace antichain {
namespace {

constexpr const char* momentum_group = "momentum";

struct Entry {
  std::string name, group;  // the group of momentum, else ""
  const ParamSpec* spec = nullptr;
  Tensor value;  // the stage's own
  std::string path() const { return group.empty() ? name : group + "/" + name; }
};

// `visit` for each tensor of the network's state: of the entry and, for parameters, of its momentum.
template <class Visit>
void for_each_tensor(const Graph& graph, const Visit& visit) {
  for (const StateEntry& entry : state_entries(graph)) {
    visit(entry, "");
    if (!entry.buffer) visit(entry, momentum_group);
  }
}

std::vector<Entry> entries(Stage& stage) {
  std::vector<Entry> all;
  for_each_tensor(stage.graph(), [&](const StateEntry& e, const char* group) {
    if (!stage.owns(e.node)) return;
    NodeState& state = stage[e.node];
    const auto& tensors = e.buffer ? state.buffers : *group ? state.momentum : state.params;
    all.push_back({e.name, group, e.spec, tensors[size_t(e.index)]});
  });
  return all;
}

CheckpointTensor as_written(const std::string& path, const ParamSpec& spec) {
  if (spec.dtype == DType::i32) return {path, {}, false};  // a count: framework/state_dict.h
  return {path, {spec.shape.begin(), spec.shape.end()}, true};
}

std::string text(const CheckpointTensor& t) {
  return NamedTensor{"", t.shape, {}}.shape_text() + (t.is_float ? "" : ", int64");
}

// The file that has the tensor, of the shape it needs.
const CheckpointFile& file_with(const Manifest& manifest, const CheckpointTensor& wanted,
                                const std::string& checkpoint) {
  for (const CheckpointFile& file : manifest.files)
    for (const CheckpointTensor& tensor : file.tensors)
      if (tensor.path == wanted.path) {
        if (tensor == wanted) return file;
        throw Error(fmt::format("{}: '{}' is {}, but {} in the network", checkpoint, wanted.path,
                                text(tensor), text(wanted)),
                    "it is a checkpoint of another network");
      }
  throw Error(fmt::format("{} has no tensor '{}'", checkpoint, wanted.path),
              "it is a checkpoint of another network");
}

void set(const Entry& entry, const NamedTensor& tensor, const Backend& backend, const std::string& origin) {
  const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
  from_named(tensor, plain, origin);
  const Tensor host = Tensor::host(entry.value.spec());
  relayout(plain, host);
  backend.copy(host, entry.value);
}

}  // namespace

std::vector<CheckpointTensor> checkpoint_tensors(const Graph& graph) {
  std::vector<CheckpointTensor> all;
  for_each_tensor(graph, [&](const StateEntry& e, const char* group) {
    all.push_back(as_written(*group ? group + ("/" + e.name) : e.name, *e.spec));
  });
  return all;
}

void StateCopy::take(Stage& stage, bool alias) {
  const std::vector<Entry> now = entries(stage);
  if (items_.empty())
    for (const Entry& e : now)
      items_.push_back(
          {as_written(e.path(), *e.spec), e.name, e.group, {e.spec->shape, e.spec->dtype}, {}, {}});
  for (size_t i = 0; i < now.size(); ++i) {
    Item& item = items_[i];
    if (!alias && !item.copy) item.copy = Tensor::host(now[i].value.spec());
    if (!alias) stage.context().backend().copy(now[i].value, item.copy);
    item.value = alias ? now[i].value : item.copy;
  }
}

int64_t StateCopy::bytes() const {
  int64_t sum = 0;
  for (const Item& item : items_) sum += item.plain.bytes();
  return sum;
}

std::vector<CheckpointTensor> StateCopy::tensors() const {
  std::vector<CheckpointTensor> all;
  for (const Item& item : items_) all.push_back(item.tensor);
  return all;
}

std::string StateCopy::to_hdf5(const Backend& backend, const std::function<void()>& beat) const {
  Hdf5Writer writer(bytes() + (int64_t(1) << 20));
  for (const Item& item : items_) {
    Tensor host = item.value;
    if (!item.copy || host.raw() != item.copy.raw()) {  // the stage's own, perhaps on another device
      host = Tensor::host(item.value.spec());
      backend.copy(item.value, host);
    }
    Tensor plain = host;
    if (host.layout() != Layout::plain) {
      plain = Tensor::host(item.plain);
      relayout(host, plain);
    }
    writer.add(to_named(item.name, plain), item.group);
    beat();
  }
  return writer.finish();
}

int64_t state_bytes(const Stage& stage) {
  int64_t sum = 0;
  for (const NodeId id : stage.nodes())
    for (const auto* tensors : {&stage[id].params, &stage[id].momentum, &stage[id].buffers})
      for (const Tensor& tensor : *tensors) sum += tensor.bytes();
  return sum;
}

void restore(Stage& stage, const std::string& checkpoint, const Manifest& manifest) {
  std::map<const CheckpointFile*, std::vector<Entry>> wanted;
  for (const CheckpointFile& file : manifest.files) wanted[&file];
  for (const Entry& entry : entries(stage))
    wanted[&file_with(manifest, as_written(entry.path(), *entry.spec), checkpoint)].push_back(entry);
  for (const auto& [file, in_file] : wanted) {
    if (in_file.empty()) continue;
    const std::string origin = checkpoint + "/" + file->name;
    std::vector<std::string> paths;
    for (const Entry& entry : in_file) paths.push_back(entry.path());
    const auto tensors = read_hdf5(read_checkpoint_file(checkpoint, *file), paths, origin);
    for (size_t i = 0; i < tensors.size(); ++i)
      set(in_file[i], tensors[i], stage.context().backend(), origin);
  }
}

}  // namespace antichain
