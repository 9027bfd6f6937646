#include "pipeline/stage/stage_state.h"

#include <fmt/format.h>

#include <map>
#include <memory>

#include "framework/files/checkpoint_folder.h"
#include "framework/files/finite_weights.h"
#include "framework/files/hdf5.h"
#include "framework/files/state_dict.h"

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
  if (spec.dtype == DType::i32) return {path, {}, false};  // a count: framework/files/state_dict.h
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

// Memory for one tensor after the other, as much as the largest needs.
class Scratch {
 public:
  Tensor tensor(const TensorSpec& spec) {
    if (spec.bytes() > bytes_) memory_ = allocate_host(bytes_ = spec.bytes());
    return {spec, memory_};
  }

 private:
  std::shared_ptr<std::byte> memory_;
  int64_t bytes_ = 0;
};

void set(const Entry& entry, const NamedTensor& tensor, const Context& context, const std::string& origin) {
  const Tensor plain = Tensor::host({entry.spec->shape, entry.spec->dtype});
  from_named(tensor, plain, origin);
  const Tensor host = Tensor::host(entry.value.spec());
  relayout(plain, host);
  context.backend().copy(context, host, entry.value);
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
    if (!alias) stage.context().backend().copy(stage.context(), now[i].value, item.copy);
    item.value = alias ? now[i].value : item.copy;
  }
}

std::vector<CheckpointTensor> StateCopy::tensors() const {
  std::vector<CheckpointTensor> all;
  for (const Item& item : items_) all.push_back(item.tensor);
  return all;
}

void StateCopy::write_hdf5(const Context& context, const std::function<void(std::string_view)>& sink) const {
  Scratch host_memory, plain_memory;
  const auto plain = [&](const Item& item) {
    Tensor host = item.value;
    const bool ours = item.copy && host.raw() == item.copy.raw();
    if (!ours && !context.backend().host_memory()) {  // the stage's own, out of the host's reach
      host = host_memory.tensor(item.value.spec());
      context.backend().copy(context, item.value, host);
    }
    if (host.layout() == Layout::plain) return host;
    const Tensor there = plain_memory.tensor(item.plain);
    relayout(host, there);
    return there;
  };
  std::vector<Hdf5Item> all;
  for (const Item& item : items_) {
    all.push_back({item.name, item.group, item.tensor.shape, {}});
    if (!item.tensor.is_float) all.back().count = *plain(item).data<int32_t>();
  }
  antichain::write_hdf5(
      all, [&](size_t i) { return plain(items_[i]).data<float>(); }, sink);
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
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (const std::string bad = describe_bad_number(tensors[i]); !bad.empty())
        throw Error(fmt::format("{}: {}, with which no training can go on", origin, bad),
                    "resume from an older checkpoint", ExitCode::not_a_number);
      set(in_file[i], tensors[i], stage.context(), origin);
    }
  }
  stage.prepare();
}

}  // namespace antichain
